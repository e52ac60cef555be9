// What the control plane itself costs a call: an authenticated GET of a sandbox beside a bare route of the same server that reads one row by
// its key, and the list of an org with many deleted sandboxes beside one with none. The two of a pair take turns, so that what else the
// machine does falls on both. Ratios are of answers per second; above 1 the first is faster.
// Usage: npm run bench:api -- [--rounds N] [--seconds N] [--connections N] [--json]
import { cpus, totalmem } from 'node:os';
import { parseArgs } from 'node:util';
import { Load } from './api/load-client.ts';
import type { LoadOrder } from './api/load.ts';
import { openApiWorld, POOL_CONNECTIONS } from './api/world.ts';
import { figureOf, renderTable, type Figure, type TableRow } from './statistics.ts';

const LIVE = 100;
const DELETED = 100_000;
const WARM_UP_MS = 3_000;

const { values: flags } = parseArgs({
  options: {
    rounds: { type: 'string', default: '12' },
    seconds: { type: 'string', default: '1.5' },
    connections: { type: 'string', default: '16' },
    json: { type: 'boolean', default: false },
  },
});
const positive = (name: 'rounds' | 'seconds' | 'connections', most: number): number => {
  const value = Number(flags[name]);
  if (!(value > 0 && value <= most)) throw new Error(`--${name}: '${flags[name]}' is not a number above 0 and up to ${most}`);
  return value;
};
const rounds = Math.ceil(positive('rounds', 1_000));
const seconds = positive('seconds', 600);
const connections = Math.ceil(positive('connections', 1_000));

type Target = Omit<LoadOrder, 'connections' | 'milliseconds'>;

interface Measured {
  perSecond: number[];
  latenciesMs: number[];
}

/** Measures both in turn, `rounds` times; each turn's ratio is of its own two halves. */
async function compare(
  load: Load,
  one: Target,
  other: Target,
  atOnce: number,
): Promise<{ one: Measured; other: Measured; ratios: number[] }> {
  for (const target of [one, other]) await load.run({ ...target, connections: atOnce, milliseconds: WARM_UP_MS });
  const measured = { one: { perSecond: [], latenciesMs: [] } as Measured, other: { perSecond: [], latenciesMs: [] } as Measured };
  const ratios: number[] = [];
  const turn = async (which: 'one' | 'other', target: Target): Promise<number> => {
    const { perSecond, latenciesMs } = await load.run({ ...target, connections: atOnce, milliseconds: seconds * 1_000 });
    measured[which].perSecond.push(perSecond);
    for (const latency of latenciesMs) measured[which].latenciesMs.push(latency);
    return perSecond;
  };
  for (let round = 0; round < rounds; round += 1) {
    // Whoever comes second in one round comes first in the next.
    const first = round % 2 === 0 ? 'one' : 'other';
    const a = await turn(first, first === 'one' ? one : other);
    const b = await turn(first === 'one' ? 'other' : 'one', first === 'one' ? other : one);
    ratios.push(first === 'one' ? a / b : b / a);
  }
  return { ...measured, ratios };
}

const percentile = (values: readonly number[], share: number): number => {
  const sorted = Float64Array.from(values).toSorted();
  return sorted[Math.min(sorted.length - 1, Math.ceil(share * sorted.length) - 1)] ?? Number.NaN;
};
const twoDecimals = (value: number): number => Math.round(value * 100) / 100;
const exact = (figure: Figure): Figure => ({
  min: twoDecimals(figure.min),
  median: twoDecimals(figure.median),
  p95: twoDecimals(figure.p95),
  max: twoDecimals(figure.max),
});
const told = ({ perSecond, latenciesMs }: Measured): { perSecond: Figure; p50Ms: number; p99Ms: number } => ({
  perSecond: exact(figureOf(perSecond)),
  p50Ms: twoDecimals(percentile(latenciesMs, 0.5)),
  p99Ms: twoDecimals(percentile(latenciesMs, 0.99)),
});

const world = await openApiWorld({ live: LIVE, deleted: DELETED });
const load = new Load();
try {
  const read = await compare(
    load,
    { port: world.apiPort, path: `/v1/sandboxes/${world.live.sandboxId}`, token: world.live.token },
    { port: world.barePort, path: `/sandboxes/${world.live.sandboxId}`, token: null },
    connections,
  );
  const list = await compare(
    load,
    { port: world.apiPort, path: `/v1/orgs/${world.live.orgId}/sandboxes`, token: world.live.token },
    { port: world.apiPort, path: `/v1/orgs/${world.withDeleted.orgId}/sandboxes`, token: world.withDeleted.token },
    Math.min(connections, 4),
  );

  const machine = { cpus: cpus().length, model: cpus()[0]?.model ?? null, memoryGib: Math.round(totalmem() / 2 ** 30) };
  const versions = { node: process.version, postgres: world.postgresVersion };
  const result = {
    ratioToBareRead: exact(figureOf(read.ratios)),
    listWithDeletedRatio: exact(figureOf(list.ratios)),
    getSandbox: told(read.one),
    bareRead: told(read.other),
    listLive: told(list.one),
    listWithDeleted: told(list.other),
    rounds,
    seconds,
    connections,
    poolConnections: POOL_CONNECTIONS,
    sandboxes: { live: LIVE, deleted: DELETED },
    machine,
    versions,
  };
  console.log(
    `${machine.model ?? 'unknown CPU'}, ${machine.cpus} cores, ${machine.memoryGib} GiB, Node ${versions.node}, PostgreSQL ${versions.postgres}\n` +
      `${rounds} rounds of ${seconds} s, ${connections} connections, a pool of ${POOL_CONNECTIONS}; client, server and Postgres share the cores\n`,
  );
  const row = (label: string, { perSecond }: Measured): TableRow => ({
    label,
    unit: 'answers/s',
    figure: figureOf(perSecond),
    count: perSecond.length,
  });
  console.log(
    renderTable([
      row('GET of a sandbox', read.one),
      row('bare read of one row', read.other),
      row(`list, ${LIVE} live`, list.one),
      row(`list, ${LIVE} live and ${DELETED} deleted`, list.other),
    ]),
  );
  console.log('');
  for (const [label, { p50Ms, p99Ms }] of [
    ['GET of a sandbox', result.getSandbox],
    ['bare read of one row', result.bareRead],
    [`list, ${LIVE} live`, result.listLive],
    [`list, ${LIVE} live and ${DELETED} deleted`, result.listWithDeleted],
  ] as const) {
    console.log(`${label}: half of the answers within ${p50Ms} ms, 99 % within ${p99Ms} ms`);
  }
  const { ratioToBareRead, listWithDeletedRatio } = result;
  console.log(`\nGET of a sandbox against the bare read: ${ratioToBareRead.median} (${ratioToBareRead.min} to ${ratioToBareRead.max})`);
  console.log(
    `list without deleted against with: ${listWithDeletedRatio.median} (${listWithDeletedRatio.min} to ${listWithDeletedRatio.max})`,
  );
  if (flags.json) console.log(JSON.stringify(result));
} finally {
  await load.close();
  await world.close();
}
