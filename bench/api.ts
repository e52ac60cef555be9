// Cost of the control plane per call. Compares an authenticated GET of a sandbox with a bare route
// of the same server that reads one row by its key. Compares the list of an org with many deleted
// sandboxes with one that has none. The two of a pair take turns, so that other load on the host
// affects both. Ratios are of responses per second; above 1 the first is faster. Repeats the GET
// and the bare route with 1, 32 and 200 connections, in a quarter of the rounds. Usage: npm run
// bench:api -- [--rounds N] [--seconds N] [--connections N] [--json]
import { cpus, totalmem } from 'node:os';
import { Load } from './api/load-client.ts';
import type { LoadOrder } from './api/load.ts';
import { POOL_CONNECTIONS } from './api/control-plane.ts';
import { openApiWorld } from './api/world.ts';
import { hardware } from './world/hardware.ts';
import { readOptions } from './world/options.ts';
import { figureOf, percentile, renderTable, round, rounded, type Figure, type TableRow } from './world/statistics.ts';

const LIVE = 100;
const DELETED = 100_000;
const WARM_UP_MS = 3_000;
const LIST_CONNECTIONS = 4;
const LADDER = [1, 32, 200];

const options = readOptions({
  rounds: { type: 'string', default: '40' },
  seconds: { type: 'string', default: '0.5' },
  connections: { type: 'string', default: '16' },
  json: { type: 'boolean', default: false },
});
const rounds = options.whole('rounds', 1, 1_000);
const seconds = options.number('seconds', 0.001, 600);
const connections = options.whole('connections', 1, 1_000);

type Target = Omit<LoadOrder, 'connections' | 'milliseconds'>;

interface Measured {
  target: Target;
  perSecond: number[];
  latenciesMs: number[];
  /** CPU time of the server process per response; least affected by other load on the host. */
  cpuMicros: number[];
}

/** Measures the targets in turn, reversing the order each round. */
async function alternate(load: Load, targets: readonly Target[], atOnce: number, times = rounds): Promise<Measured[]> {
  for (const target of targets) await load.run({ ...target, connections: atOnce, milliseconds: WARM_UP_MS });
  const measured = targets.map((target) => ({
    target,
    perSecond: [] as number[],
    latenciesMs: [] as number[],
    cpuMicros: [] as number[],
  }));
  for (let round = 0; round < times; round += 1) {
    for (const one of round % 2 === 0 ? measured : measured.toReversed()) {
      const before = process.cpuUsage();
      const { perSecond, latenciesMs } = await load.run({
        ...one.target,
        connections: atOnce,
        milliseconds: seconds * 1_000,
      });
      const { user, system } = process.cpuUsage(before);
      one.perSecond.push(perSecond);
      one.cpuMicros.push((user + system) / latenciesMs.length);
      for (const latency of latenciesMs) one.latenciesMs.push(latency);
    }
  }
  return measured;
}

/** Ratio of responses per second, per round. */
const ratio = (one: Measured, other: Measured): Figure =>
  rounded(figureOf(one.perSecond.map((perSecond, at) => perSecond / (other.perSecond[at] ?? Number.NaN))), 2);

const told = ({ perSecond, latenciesMs, cpuMicros }: Measured) => ({
  perSecond: rounded(figureOf(perSecond), 2),
  p50Ms: round(percentile(latenciesMs, 0.5), 2),
  p99Ms: round(percentile(latenciesMs, 0.99), 2),
  serverCpuMicros: rounded(figureOf(cpuMicros), 2),
});

const world = await openApiWorld({ live: LIVE, deleted: DELETED });
const load = new Load();
try {
  const targets = [
    { port: world.apiPort, path: `/v1/sandboxes/${world.live.sandboxId}`, token: world.live.token },
    { port: world.barePort, path: `/sandboxes/${world.live.sandboxId}`, token: null },
    { port: world.barePort, path: `/prepared/${world.live.sandboxId}`, token: null },
  ];
  const [get, bare, prepared] = (await alternate(load, targets, connections)) as [Measured, Measured, Measured];
  const ladder: { connections: number; get: Measured; bare: Measured }[] = [];
  for (const atOnce of LADDER) {
    const measured = await alternate(load, targets.slice(0, 2), atOnce, Math.ceil(rounds / 4));
    const [ofApi, ofBare] = measured as [Measured, Measured];
    ladder.push({ connections: atOnce, get: ofApi, bare: ofBare });
  }
  const [listLive, listWithDeleted] = (await alternate(
    load,
    [world.live, world.withDeleted].map(({ orgId, token }) => ({
      port: world.apiPort,
      path: `/v1/orgs/${orgId}/sandboxes`,
      token,
    })),
    Math.min(connections, LIST_CONNECTIONS),
  )) as [Measured, Measured];

  const machine = { cpus: cpus().length, model: cpus()[0]?.model ?? null, memoryGib: Math.round(totalmem() / 2 ** 30) };
  const versions = { node: process.version, postgres: world.postgresVersion };
  const result = {
    ratioToBareRead: ratio(get, bare),
    ratioToPreparedRead: ratio(get, prepared),
    // Ratio of times: above 1, deleted sandboxes have a cost.
    listWithDeletedRatio: ratio(listLive, listWithDeleted),
    getSandbox: told(get),
    bareRead: told(bare),
    preparedRead: told(prepared),
    byConnections: ladder.map(({ connections: atOnce, get: ofApi, bare: ofBare }) => ({
      connections: atOnce,
      ratioToBareRead: ratio(ofApi, ofBare),
      getSandbox: told(ofApi),
      bareRead: told(ofBare),
    })),
    listLive: told(listLive),
    listWithDeleted: told(listWithDeleted),
    rounds,
    seconds,
    connections,
    poolConnections: POOL_CONNECTIONS,
    sandboxes: { live: LIVE, deleted: DELETED },
    machine,
    versions,
  };
  console.log(
    `${hardware()}, Node ${versions.node}, PostgreSQL ${versions.postgres}\n` +
      `${rounds} rounds of ${seconds} s, ${connections} connections, a pool of ${POOL_CONNECTIONS}; ` +
      'client, server and Postgres share the cores\n',
  );
  const rows: [string, Measured][] = [
    ['GET of a sandbox', get],
    ['bare read of one row', bare],
    ['the same, prepared', prepared],
    ...ladder.flatMap(({ connections: atOnce, get: ofApi, bare: ofBare }): [string, Measured][] => [
      [`GET of a sandbox, connections: ${atOnce}`, ofApi],
      [`bare read of one row, connections: ${atOnce}`, ofBare],
    ]),
    [`list, ${LIVE} live`, listLive],
    [`list, ${LIVE} live and ${DELETED} deleted`, listWithDeleted],
  ];
  const table = rows.map(([label, { perSecond }]): TableRow => ({
    label,
    unit: 'answers/s',
    figure: figureOf(perSecond),
    count: perSecond.length,
  }));
  console.log(`${renderTable(table)}\n`);
  for (const [label, measured] of rows) {
    const { p50Ms, p99Ms, serverCpuMicros } = told(measured);
    console.log(
      `${label}: half of the answers within ${p50Ms} ms, 99 % within ${p99Ms} ms; ` +
        `server ${serverCpuMicros.median} µs each`,
    );
  }
  console.log('');
  for (const [label, { median, min, max }] of [
    ['GET of a sandbox against the bare read, by answers a second', result.ratioToBareRead],
    ['GET of a sandbox against the prepared bare read', result.ratioToPreparedRead],
    ['list with deleted ones against the one without, by time', result.listWithDeletedRatio],
  ] as const)
    console.log(`${label}: ${median} (${min} to ${max})`);

  if (options.values.json) console.log(JSON.stringify(result));
} finally {
  await load.close();
  await world.close();
}
