// Lifecycle figures through the public API: sleep and wake by dirtied memory and RAM size, creates
// from the warm pool beside gVisor's `runsc run`, and memory of idle VMs. Each part has its own
// installation. Usage: npm run bench:lifecycle -- [--only sleep-wake|pool|memory]... [--rounds N]
// [--creates N] [--burst N] [--vms N,N,...] [--json]
import { Progress } from '@berth/machine/output/progress.ts';
import { measureMemory, memoryFigures } from './lifecycle/memory.ts';
import { measurePool } from './lifecycle/pool.ts';
import { measureSleepWake } from './lifecycle/sleep-wake.ts';
import { hardware } from './world/hardware.ts';
import { withWorld, type BenchWorld } from './world/installation.ts';
import { readOptions } from './world/options.ts';
import { renderTable, type TableRow } from './world/statistics.ts';

const PARTS = ['sleep-wake', 'pool', 'memory'] as const;

const options = readOptions({
  only: { type: 'string', multiple: true, default: [...PARTS] },
  rounds: { type: 'string', default: '5' },
  creates: { type: 'string', default: '15' },
  burst: { type: 'string', default: '20' },
  vms: { type: 'string', default: '10,20,40' },
  json: { type: 'boolean', default: false },
});
const rounds = options.whole('rounds', 1, 1_000);
const creates = options.whole('creates', 1, 1_000);
const burst = options.whole('burst', 1, 1_000);
const vms = options.values.vms.split(',').map(Number);
if (!vms.every((count) => Number.isInteger(count) && count >= 1 && count <= 1_000))
  throw new Error(`--vms: '${options.values.vms}' is not a list of integers from 1 to 1000`);
const chosen = options.chosen('only', PARTS);

/** Figures by name, and the versions that they were measured with. */
type Facts = Record<string, unknown> & Partial<Record<'accelerator' | 'qemuVersion' | 'runscVersion', string | null>>;

const EVERY_PART = {
  'sleep-wake': { environment: {}, measure: (world: BenchWorld) => measureSleepWake(world, rounds) },
  pool: {
    environment: {
      BERTH_POOL_MIN: String(burst),
      BERTH_POOL_MAX: String(burst),
      BERTH_MEMORY_OVERCOMMIT: '4',
      BERTH_CPU_OVERCOMMIT: '32',
    },
    measure: (world: BenchWorld) => measurePool(world, { creates, burst }),
  },
  memory: {
    environment: { BERTH_MEMORY_OVERCOMMIT: '8', BERTH_CPU_OVERCOMMIT: '64' },
    measure: async (world: BenchWorld) => memoryFigures(await measureMemory(world, vms)),
  },
} as const;

const progress = new Progress();
const rows: TableRow[] = [];
const json: Facts = {};
for (const part of PARTS.filter((name) => chosen.includes(name))) {
  const { environment, measure } = EVERY_PART[part];
  await withWorld(progress, environment, async (world) => {
    const figures = await measure(world);
    rows.push(...figures.rows);
    const { accelerator, qemuVersion } = await world.host();
    Object.assign(json, figures.json, { accelerator, qemuVersion });
  });
}

const machine = hardware();
const { accelerator, qemuVersion, runscVersion } = json;
const versions = [`QEMU ${qemuVersion}`, runscVersion].filter((version) => version !== undefined);
console.log(`\n${machine}; accelerator ${accelerator}, ${versions.join(', ')}\n`);
console.log(renderTable(rows));
if (options.values.json) console.log(JSON.stringify({ ...json, rounds, creates, burst, machine }));
