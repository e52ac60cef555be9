// `npm run fuzz:api -- --seed S [--runs N] [--real]`: one run of the fuzzer that knows only
// openapi.json, against its own service. The last line counts; the exit status is 0 when every
// response matched the document. `--real` uses real VMs.
import { readOptions } from '../world/options.ts';
import type { ApiFuzzReport } from './report.ts';
import { runApiFuzz } from './run.ts';
import { ApiFuzzWorld } from './world.ts';

const options = readOptions('berth fuzz-api', {
  seed: { type: 'string', default: '1' },
  runs: { type: 'string', default: '2000' },
  clients: { type: 'string', default: '4' },
  real: { type: 'boolean', default: false },
});
const runs = options.whole('runs', 1, 10_000_000);
const clients = options.whole('clients', 1, 50);
const { seed, real } = options.values;

const stop = new AbortController();
process.once('SIGINT', () => stop.abort());
process.once('SIGTERM', () => stop.abort());
const world = await ApiFuzzWorld.start(real ? 'qemu' : 'fake');
let report: ApiFuzzReport;
let left: string[];
try {
  report = await runApiFuzz({
    seed,
    runs,
    clients,
    target: world,
    say: (line) => console.log(line),
    signal: stop.signal,
  });
} finally {
  left = await world.end();
}
for (const line of report.tally()) console.log(line);
for (const id of report.neverSucceeded()) console.log(`never with a success: ${id}`);
for (const { kind, what } of report.findings) console.log(`!! ${kind}: ${what}`);
for (const what of left) console.log(`!! after the end: ${what}`);
console.log(report.lastLine(seed));
process.exitCode = report.clean && left.length === 0 ? 0 : 1;
