// Transfers into and out of a sandbox through the public API of a dedicated installation: files,
// previews, and with --only large a file of some GiB. Each part is a file in bench/data/. Usage:
// npm run bench:data -- [--only files|previews|large]... [--rounds N] [--gib N] [--json]
import { Progress } from '@berth/machine/output/progress.ts';
import { measureFiles } from './data/files.ts';
import { measureLargeFiles } from './data/large-files.ts';
import { measurePreviews } from './data/previews.ts';
import { hardware } from './world/hardware.ts';
import { withWorld, type BenchWorld } from './world/installation.ts';
import { readOptions } from './world/options.ts';
import { figuresByKey, renderTable, type Measured } from './world/statistics.ts';

/** Each part measures the given number of rounds on the given installation. */
const PARTS: Readonly<
  Record<'files' | 'previews' | 'large', (world: BenchWorld, rounds: number) => Promise<Measured[]>>
> = {
  files: measureFiles,
  previews: measurePreviews,
  large: (world) => measureLargeFiles(world, Math.round(options.number('gib', 0.0625, 100) * 1_024)),
};

const options = readOptions({
  only: { type: 'string', multiple: true, default: ['files', 'previews'] },
  rounds: { type: 'string', default: '20' },
  gib: { type: 'string', default: '0.25' },
  json: { type: 'boolean', default: false },
});
const rounds = options.whole('rounds', 1, 1_000);
const parts = options.chosen('only', ['files', 'previews', 'large']).map((name) => PARTS[name]);

const rows: Measured[] = [];
// Raises the request limits, which would distort the measurement.
const { accelerator, qemuVersion } = await withWorld(
  new Progress(),
  { BERTH_REQUESTS_PER_MINUTE: '100000', BERTH_VISITOR_REQUESTS_PER_MINUTE: '10000000' },
  async (world) => {
    for (const measure of parts) rows.push(...(await measure(world, rounds)));
    return await world.host();
  },
);

const machine = hardware();
console.log(`\n${machine}; accelerator ${accelerator}, QEMU ${qemuVersion}\n`);
console.log(renderTable(rows));
if (options.values.json)
  console.log(JSON.stringify({ ...figuresByKey(rows), rounds, machine, accelerator, qemuVersion }));
