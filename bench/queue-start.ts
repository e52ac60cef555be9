// Cost of the durable queue: response time of a create that starts right after the commit or by
// polling, CPU time of idle polling, and delay until a step resumes after its replica was killed.
// Real Postgres, real services, a stand-in host that takes 10 ms.
//
//   node bench/queue-start.ts [--json] [--creates 60] [--kills 8]
import { readFile } from 'node:fs/promises';
import { cpus } from 'node:os';
import { setTimeout as delay } from 'node:timers/promises';
import { Replica, type ReplicaOptions } from '../api/test/workers/replica.ts';
import { openWorld, type World } from '../api/test/workers/world.ts';
import { hardware } from './world/hardware.ts';
import { readOptions } from './world/options.ts';
import { figureOf, renderTable, type Figure } from './world/statistics.ts';

const HOST_ANSWER_MS = 10;
const ROUNDS = 3;
const WARM_UP_CREATES = 10;
const IDLE_MS = 10_000;
const CLOCK_TICKS_PER_SECOND = 100;

interface Mode {
  name: string;
  options: Pick<ReplicaOptions, 'startAtOnce' | 'queuePollMs'>;
}

const MODES: Mode[] = [
  { name: 'started after the commit, poll 1000 ms', options: { startAtOnce: true, queuePollMs: 1_000 } },
  { name: 'poll 10 ms', options: { startAtOnce: false, queuePollMs: 10 } },
  { name: 'poll 100 ms', options: { startAtOnce: false, queuePollMs: 100 } },
  { name: 'poll 1000 ms', options: { startAtOnce: false, queuePollMs: 1_000 } },
];

async function measureCreates(world: World, creates: number): Promise<Map<string, Figure>> {
  const samples = new Map<string, number[]>(MODES.map((mode) => [mode.name, []]));
  world.host.createMs = HOST_ANSWER_MS;
  for (let round = 0; round < ROUNDS; round += 1) {
    for (const mode of MODES) {
      const replica = await Replica.start({ ...world.replica, ...mode.options });
      const warmUp = mode.options.queuePollMs === 1_000 && !mode.options.startAtOnce ? 2 : WARM_UP_CREATES;
      for (let index = 0; index < warmUp + creates / ROUNDS; index += 1) {
        const { ms, status, id } = await replica.ask('create');
        if (status !== 'ready') throw new Error(`a create was answered ${status}`);
        if (index >= warmUp) samples.get(mode.name)?.push(ms);
        // Random phase: otherwise each create would follow the end of the last one.
        await replica.ask('destroy', { sandboxId: id, respondAsync: true });
        await delay(Math.random() * Math.min(200, mode.options.queuePollMs ?? 0));
      }
      await replica.stop();
    }
  }
  return new Map([...samples].map(([name, values]) => [name, figureOf(values)]));
}

/** CPU milliseconds of the server and all its backends; the parent counts exited backends. */
async function postgresCpuMs(world: World): Promise<number> {
  const own = await cpuTicks(world.postgres.pid());
  const children = (await readFile(`/proc/${world.postgres.pid()}/task/${world.postgres.pid()}/children`, 'utf8'))
    .trim()
    .split(' ');
  let ticks = own;
  for (const child of children) ticks += await cpuTicks(Number(child));
  return (ticks * 1_000) / CLOCK_TICKS_PER_SECOND;
}

async function cpuTicks(pid: number): Promise<number> {
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8');
  // Fields 14 to 17: user and system time, own and of children. Field 2 may contain spaces.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return [11, 12, 13, 14].reduce((sum, index) => sum + Number(fields[index]), 0);
}

async function measureIdle(
  world: World,
  queuePollMs: number,
): Promise<{ replicaCpuMsPerSecond: number; postgresCpuMsPerSecond: number }> {
  const replica = await Replica.start({ ...world.replica, startAtOnce: true, queuePollMs });
  await delay(2_000);
  const before = {
    replica: (await replica.ask('cpu')).ms,
    postgres: await postgresCpuMs(world),
    at: performance.now(),
  };
  await delay(IDLE_MS);
  const seconds = (performance.now() - before.at) / 1_000;
  const replicaCpuMsPerSecond = ((await replica.ask('cpu')).ms - before.replica) / seconds;
  const postgresCpuMsPerSecond = ((await postgresCpuMs(world)) - before.postgres) / seconds;
  await replica.stop();
  return { replicaCpuMsPerSecond, postgresCpuMsPerSecond };
}

/** Time from `kill -9` of the replica, with a create at the host, until the sandbox is ready. */
async function measureRecovery(world: World, kills: number, liveReplica: boolean): Promise<Figure> {
  world.host.createMs = 40;
  const samples: number[] = [];
  let other = liveReplica ? await Replica.start(world.replica) : undefined;
  for (let kill = 0; kill < kills; kill += 1) {
    const killed = await Replica.start(world.replica);
    await delay(Math.random() * 1_000);
    const calls = world.host.calls.length;
    const { id } = await killed.ask('create', { respondAsync: true });
    while (world.host.calls.length === calls) await delay(1);
    const startedAt = performance.now();
    await killed.kill();
    const next = other ?? (await Replica.start(world.replica));
    await world.until(id, (row) => row.status === 'ready');
    samples.push(performance.now() - startedAt);
    await next.ask('destroy', { sandboxId: id });
    if (other === undefined) await next.stop();
  }
  await other?.stop();
  other = undefined;
  return figureOf(samples);
}

const options = readOptions({
  json: { type: 'boolean', default: false },
  creates: { type: 'string', default: '60' },
  kills: { type: 'string', default: '8' },
});
const createCount = options.whole('creates', 1, 100_000);
const kills = options.whole('kills', 1, 100_000);
const world = await openWorld();
try {
  const creates = await measureCreates(world, createCount);
  const idle = new Map<number, Awaited<ReturnType<typeof measureIdle>>>();
  for (const pollMs of [1_000, 100, 10]) idle.set(pollMs, await measureIdle(world, pollMs));
  const restart = await measureRecovery(world, kills, false);
  const takeover = await measureRecovery(world, kills, true);

  const row = (label: string, count: number, figure: Figure) => ({ label, unit: 'ms', count, figure });
  const rows = [
    ...[...creates].map(([name, figure]) => row(`create, ${name}`, createCount, figure)),
    row('kill -9 to ready, a new replica is started', kills, restart),
    row('kill -9 to ready, another replica is alive', kills, takeover),
  ];
  console.log(`${hardware()}, Node ${process.version}, host answers in ${HOST_ANSWER_MS} ms\n`);
  console.log(renderTable(rows));
  console.log('\nidle, processor time in ms per second');
  for (const [pollMs, { replicaCpuMsPerSecond, postgresCpuMsPerSecond }] of idle) {
    const figures = `replica ${replicaCpuMsPerSecond.toFixed(1)}, PostgreSQL ${postgresCpuMsPerSecond.toFixed(1)}`;
    console.log(`  poll ${pollMs} ms: ${figures}`);
  }
  if (options.values.json) {
    console.log(
      JSON.stringify({
        machine: { cpus: cpus().length, model: cpus()[0]?.model ?? null, node: process.version },
        hostAnswerMs: HOST_ANSWER_MS,
        createMs: Object.fromEntries(creates),
        killToReadyMs: { restart, takeover },
        idleCpuMsPerSecond: Object.fromEntries(idle),
      }),
    );
  }
} finally {
  await world.close();
}
