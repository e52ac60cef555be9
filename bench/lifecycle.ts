// Lifecycle figures through the public API: sleep and wake by dirtied memory and RAM size, creates
// from the warm pool beside gVisor's `runsc run`, and memory of idle VMs. Each part has its own
// installation. Usage: npm run bench:lifecycle -- [--only sleep-wake|pool|memory]... [--rounds N]
// [--creates N] [--burst N] [--vms N,N,...] [--json]
import { Progress } from '@berth/machine/output/progress.ts';
import { measureMemory, type MemoryFigures } from './lifecycle/memory.ts';
import { measurePool, type PoolFigures } from './lifecycle/pool.ts';
import { measureSleepWake, type SleepWakeFigures } from './lifecycle/sleep-wake.ts';
import { hardware } from './world/hardware.ts';
import { withWorld } from './world/installation.ts';
import { readOptions } from './world/options.ts';
import { renderTable, rounded, type Figure, type TableRow } from './world/statistics.ts';

const PARTS = ['sleep-wake', 'pool', 'memory'] as const;

const values = readOptions({
  only: { type: 'string', multiple: true, default: [...PARTS] },
  rounds: { type: 'string', default: '5' },
  creates: { type: 'string', default: '15' },
  burst: { type: 'string', default: '20' },
  vms: { type: 'string', default: '10,20,40' },
  json: { type: 'boolean', default: false },
});
const whole = (name: string, text: string): number => {
  const value = Number(text);
  if (!Number.isInteger(value) || value < 1 || value > 1_000)
    throw new Error(`--${name}: '${text}' is not an integer from 1 to 1000`);
  return value;
};
const rounds = whole('rounds', values.rounds);
const creates = whole('creates', values.creates);
const burst = whole('burst', values.burst);
const vms = values.vms.split(',').map((text) => whole('vms', text));
for (const name of values.only)
  if (!(PARTS as readonly string[]).includes(name)) throw new Error(`--only: '${name}' is none of ${PARTS.join(', ')}`);

const progress = new Progress();
let host: { accelerator: string; qemuVersion: string | null } | null = null;
let sleepWake: SleepWakeFigures[] = [];
let pool: PoolFigures | null = null;
let memory: MemoryFigures[] = [];

if (values.only.includes('sleep-wake')) {
  await withWorld(progress, {}, async (world) => {
    host = await world.host();
    sleepWake = await measureSleepWake(world, rounds);
  });
}
if (values.only.includes('pool')) {
  const kept = {
    BERTH_POOL_MIN: String(burst),
    BERTH_POOL_MAX: String(burst),
    BERTH_MEMORY_OVERCOMMIT: '4',
    BERTH_CPU_OVERCOMMIT: '32',
  };
  await withWorld(progress, kept, async (world) => {
    host = await world.host();
    pool = await measurePool(world, { creates, burst });
  });
}
if (values.only.includes('memory')) {
  await withWorld(progress, { BERTH_MEMORY_OVERCOMMIT: '8', BERTH_CPU_OVERCOMMIT: '64' }, async (world) => {
    host = await world.host();
    memory = await measureMemory(world, vms);
  });
}

const facts = host as { accelerator: string; qemuVersion: string | null } | null;
const made = pool as PoolFigures | null;
const machine = hardware();
console.log(
  `\n${machine}; accelerator ${facts?.accelerator}, ` +
    `QEMU ${facts?.qemuVersion}${made === null ? '' : `, ${made.runscVersion}`}\n`,
);
console.log(renderTable(rowsOf()));
if (values.json) {
  const medians = (key: 'sleepMs' | 'wakeMs' | 'wakeToFirstExecMs' | 'snapshotMib'): unknown[] =>
    sleepWake.map(({ dirtyMib, ramMib, [key]: figure }) => ({
      dirtyMib,
      ramMib,
      median: rounded(figure).median,
      max: rounded(figure).max,
    }));
  const most = memory.at(-1);
  console.log(
    JSON.stringify({
      ...(made === null
        ? {}
        : {
            poolCreateToFirstExecMs: rounded(made.poolCreateToFirstExecMs),
            [`burst${burst}CreateToFirstExecMs`]: rounded(made.burstCreateToFirstExecMs),
            poolCreateMs: rounded(made.poolCreateMs),
            runscRunMs: rounded(made.runscRunMs),
            runscVersion: made.runscVersion,
          }),
      ...(sleepWake.length === 0
        ? {}
        : {
            sleepMs: medians('sleepMs'),
            wakeMs: medians('wakeMs'),
            wakeToFirstExecMs: medians('wakeToFirstExecMs'),
            snapshotMib: medians('snapshotMib'),
          }),
      ...(most === undefined
        ? {}
        : {
            idleVmUnsharedMib: rounded(most.vmUnsharedMib),
            idleGuestUnsharedMib: rounded(most.guestUnsharedMib),
            idleByVms: memory.map((entry) => ({
              vms: entry.vms,
              vmUnsharedMib: rounded(entry.vmUnsharedMib),
              guestUnsharedMib: rounded(entry.guestUnsharedMib),
            })),
          }),
      rounds,
      creates,
      burst,
      machine,
      accelerator: facts?.accelerator,
      qemuVersion: facts?.qemuVersion,
    }),
  );
}

function rowsOf(): TableRow[] {
  const row = (label: string, unit: string, count: number, figure: Figure): TableRow => ({
    label,
    unit,
    count,
    figure,
  });
  return [
    ...(made === null
      ? []
      : [
          row('create from the pool to running', 'ms', creates, made.poolCreateMs),
          row('create from the pool to first exec', 'ms', creates, made.poolCreateToFirstExecMs),
          row(`burst of ${burst} from the pool to first exec`, 'ms', burst, made.burstCreateToFirstExecMs),
          row('runsc run (gVisor) of the same', 'ms', creates, made.runscRunMs),
        ]),
    ...sleepWake.map(({ ramMib, dirtyMib, sleepMs }) =>
      row(`sleep, ${ramMib} MiB RAM, ${dirtyMib} dirtied`, 'ms', rounds, sleepMs),
    ),
    ...sleepWake.map(({ ramMib, dirtyMib, wakeToFirstExecMs }) =>
      row(`wake to first exec, ${ramMib} MiB RAM, ${dirtyMib} dirtied`, 'ms', rounds, wakeToFirstExecMs),
    ),
    ...sleepWake.map(({ ramMib, dirtyMib, snapshotMib }) =>
      row(`snapshot, ${ramMib} MiB RAM, ${dirtyMib} dirtied`, 'MiB', rounds, snapshotMib),
    ),
    ...memory.flatMap(({ vms, vmUnsharedMib, guestUnsharedMib }) => [
      row(`idle VM of ${vms}, unshared memory`, 'MiB', vms, vmUnsharedMib),
      row("  the guest's share of it", 'MiB', vms, guestUnsharedMib),
    ]),
  ];
}
