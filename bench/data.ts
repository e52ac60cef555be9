// Transfers into and out of a sandbox through the public API of a dedicated installation: files,
// previews. Each part is a file in bench/data/. Usage: npm run bench:data -- [--only
// files|previews]... [--rounds N] [--json]
import { Progress } from '@berth/machine/output/progress.ts';
import { measureFiles } from './data/files.ts';
import type { Measured } from './data/measured.ts';
import { measurePreviews } from './data/previews.ts';
import { hardware } from './world/hardware.ts';
import { withWorld, type BenchWorld } from './world/installation.ts';
import { readOptions } from './world/options.ts';
import { renderTable, rounded } from './world/statistics.ts';

/** Each part measures the given number of rounds on the given installation. */
const PARTS: Readonly<Record<string, (world: BenchWorld, rounds: number) => Promise<Measured[]>>> = {
  files: measureFiles,
  previews: measurePreviews,
};

const values = readOptions({
  only: { type: 'string', multiple: true, default: Object.keys(PARTS) },
  rounds: { type: 'string', default: '20' },
  json: { type: 'boolean', default: false },
});
const rounds = Number(values.rounds);
if (!Number.isInteger(rounds) || rounds < 1 || rounds > 1_000)
  throw new Error(`--rounds: '${values.rounds}' is not an integer from 1 to 1000`);
const parts = values.only.map((name) => {
  const measure = PARTS[name];
  if (measure === undefined) throw new Error(`--only: '${name}' is none of ${Object.keys(PARTS).join(', ')}`);
  return measure;
});

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
if (values.json) {
  const figures = Object.fromEntries(rows.map(({ key, figure, decimals }) => [key, rounded(figure, decimals)]));
  console.log(JSON.stringify({ ...figures, rounds, machine, accelerator, qemuVersion }));
}
