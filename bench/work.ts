// CPU time outside the guest of each operation of a sandbox: API, database, host daemon and QEMU
// without its vCPU threads. KVM hides the guest's share under emulation, so these are the figures
// that users of KVM wait for. Usage: npm run bench:work -- [--rounds N] [--execs N] [--requests N]
// [--only operations|pool]... [--json]
import { Progress } from '@berth/machine/output/progress.ts';
import { Accounts, PARTS } from './work/accounts.ts';
import { measureOperations, measurePool, outsideGuest, type Operations } from './work/measure.ts';
import { hardware } from './world/hardware.ts';
import { withWorld } from './world/installation.ts';
import { readOptions } from './world/options.ts';
import { figureOf, renderCells, round, rounded } from './world/statistics.ts';

const options = readOptions({
  only: { type: 'string', multiple: true, default: ['operations', 'pool'] },
  rounds: { type: 'string', default: '7' },
  execs: { type: 'string', default: '20' },
  requests: { type: 'string', default: '1000' },
  json: { type: 'boolean', default: false },
});
const counts = {
  rounds: options.whole('rounds', 1, 100_000),
  execs: options.whole('execs', 1, 100_000),
  requests: options.whole('requests', 1, 100_000),
};
const parts = options.chosen('only', ['operations', 'pool']);

const progress = new Progress();
const limits = { BERTH_VISITOR_REQUESTS_PER_MINUTE: '10000000' };
let operations: Operations = {};
let facts: { accelerator: string; qemuVersion: string | null } | null = null;
for (const [name, measure, pool] of [
  ['operations', measureOperations, '0'],
  ['pool', measurePool, '1'],
] as const) {
  if (!parts.includes(name)) continue;
  let accounts: Accounts | undefined;
  try {
    await withWorld(progress, { ...limits, BERTH_POOL_MIN: pool, BERTH_POOL_MAX: pool }, async (world) => {
      accounts = await Accounts.open(world.dataFolder);
      const { accelerator, qemuVersion } = await world.host();
      facts = { accelerator, qemuVersion };
      operations = { ...operations, ...(await measure(world, accounts, counts)) };
    });
  } finally {
    await accounts?.remove();
  }
}

const machine = hardware();
console.log(`\n${machine}; ${JSON.stringify(facts)}; medians in ms\n`);
const medianOf = (numbers: readonly number[]): number | null =>
  numbers.length === 0 ? null : round(figureOf(numbers).median, 2);
const partMedian = (name: string, part: (typeof PARTS)[number]): number | null =>
  medianOf((operations[name]?.times ?? []).map((times) => times[part]));
console.log(
  renderCells(
    ['', 'n', 'outside the guest', ...PARTS, 'wall', 'until the vCPU runs'],
    Object.entries(operations).map(([name, operation]) => [
      name,
      String(operation.times.length),
      ...[
        round(outsideGuest(operation).median, 2),
        ...PARTS.map((part) => partMedian(name, part)),
        medianOf(operation.wallMs),
        medianOf(operation.untilRunsMs),
      ].map((value) => value?.toFixed(2) ?? ''),
    ]),
    1,
  ),
);
if (options.values.json) {
  const figures = Object.fromEntries(
    Object.entries(operations).map(([name, operation]) => [
      name,
      {
        outsideGuestMs: rounded(outsideGuest(operation), 2),
        ...Object.fromEntries(PARTS.map((part) => [`${part}Ms`, partMedian(name, part)])),
        wallMs: medianOf(operation.wallMs),
        untilRunsMs: medianOf(operation.untilRunsMs),
      },
    ]),
  );
  console.log(JSON.stringify({ ...figures, ...counts, machine, host: facts }));
}
