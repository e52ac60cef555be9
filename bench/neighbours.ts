// Work of quiet sandboxes beside a busy one: their rate beside it, divided by their fair share of
// the rate without it. 1 means that the busy sandbox took no more than its own share. It burns CPU,
// memory, disk and network at once, or with `--processes` runs as many as it may, which write at
// full speed. Usage: npm run bench:neighbours -- [--processes] [--neighbours N] [--rounds N]
// [--seconds N] [--json]
import { cpus } from 'node:os';
import { Progress } from '@berth/machine/output/progress.ts';
import { cgroupFault } from '@berth/machine/supervisor/cgroups.ts';
import { Burner } from './neighbours/burner.ts';
import { fairShare } from './neighbours/fair-share.ts';
import { measureRates, RESOURCES, type Rates, type Resource } from './neighbours/rates.ts';
import { Writers } from './neighbours/writers.ts';
import { hardware } from './world/hardware.ts';
import { withWorld } from './world/installation.ts';
import { readOptions } from './world/options.ts';
import { figureOf, renderTable, round, rounded, type Figure } from './world/statistics.ts';

/** vCPUs of the busy sandbox, of the size medium; the others have one. */
const BUSY_VCPU = 2;

const options = readOptions({
  processes: { type: 'boolean', default: false },
  neighbours: { type: 'string', default: '2' },
  rounds: { type: 'string', default: '3' },
  seconds: { type: 'string', default: '5' },
  json: { type: 'boolean', default: false },
});
const neighbours = options.whole('neighbours', 1, 600);
const rounds = options.whole('rounds', 1, 600);
const seconds = options.whole('seconds', 1, 600);

const shares: Record<Resource, number[]> = { cpu: [], disk: [], network: [], exec: [] };
const progress = new Progress();
const environment = { BERTH_POOL_MIN: '0', BERTH_POOL_MAX: '0', BERTH_CPU_OVERCOMMIT: '64' };
const accelerator = await withWorld(progress, environment, async (world) => {
  const quiet = await progress.step(`${neighbours} neighbours`, () =>
    Promise.all(
      Array.from({ length: neighbours }, () => world.client.createAwake({ name: 'neighbour', machineSize: 'small' })),
    ),
  );
  const busy = await (options.values.processes ? Writers : Burner).create(world);
  const vcpus = [BUSY_VCPU, ...quiet.map(() => 1)];
  await progress.step(`${rounds} rounds without and with the busy sandbox`, async (report) => {
    for (let round = 1; round <= rounds; round += 1) {
      report(`${round} of ${rounds}`);
      const alone = await measureRates(world, quiet, seconds);
      await busy.start();
      const beside = await measureRates(world, quiet, seconds);
      await busy.stop();
      addShares(alone, beside, vcpus);
    }
  });
  return (await world.host()).accelerator;
});

/** The worst neighbour's share counts. */
function addShares(alone: readonly Rates[], beside: readonly Rates[], vcpus: readonly number[]): void {
  for (const resource of RESOURCES) {
    const kept = alone.map((rates, at) => (beside[at]?.[resource] ?? 0) / rates[resource]);
    shares[resource].push(Math.min(...kept) / fairShare(resource, vcpus, cpus().length));
  }
}

const figures = RESOURCES.map((resource): [Resource, Figure] => [resource, figureOf(shares[resource])]);
const limits = cgroupFault() ?? 'limits of the kernel in force';
console.log(`\n${hardware()}; accelerator ${accelerator}; ${limits}\n`);
console.log(
  renderTable(
    figures.map(([resource, figure]) => ({
      label: `share of ${resource}, worst neighbour`,
      unit: 'ratio',
      count: rounds,
      figure,
      decimals: 2,
    })),
  ),
);
if (options.values.json) {
  console.log(
    JSON.stringify({
      neighbourShare: Math.min(...figures.map(([, { median }]) => round(median, 2))),
      ...Object.fromEntries(figures.map(([resource, figure]) => [`${resource}Share`, rounded(figure, 2)])),
      ...{ processes: options.values.processes, neighbours, rounds, seconds, limits, machine: hardware(), accelerator },
    }),
  );
}
