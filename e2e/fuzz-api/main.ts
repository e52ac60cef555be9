// `npm run fuzz:api -- --seed S [--runs N] [--real]`: one run of the fuzzer that knows only
// openapi.json, against its own service. The last line counts; the exit status is 0 when every
// response matched the document. `--real` uses real VMs.
import { interruption, readOptions } from '../world/options.ts';
import { fuzzApi } from './world.ts';

const options = readOptions('berth fuzz-api', {
  seed: { type: 'string', default: '1' },
  runs: { type: 'string', default: '2000' },
  clients: { type: 'string', default: '4' },
  real: { type: 'boolean', default: false },
});
const runs = options.whole('runs', 1, 10_000_000);
const clients = options.whole('clients', 1, 50);
const { seed, real } = options.values;

const report = await fuzzApi(real ? 'qemu' : 'fake', {
  seed,
  runs,
  clients,
  say: (line) => console.log(line),
  signal: interruption(),
});
for (const id of report.neverSucceeded()) console.log(`never with a success: ${id}`);
report.conclude(report.lastLine(seed));
