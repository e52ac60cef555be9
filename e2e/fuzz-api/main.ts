// `npm run fuzz:api -- --seed S [--runs N] [--real]`: one run of the fuzzer that knows only
// openapi.json, against its own service. The last line counts; the exit status is 0 when every
// response matched the document. `--real` uses real VMs.
import { parseArgs } from 'node:util';
import type { ApiFuzzReport } from './report.ts';
import { runApiFuzz } from './run.ts';
import { ApiFuzzWorld } from './world.ts';

const { values } = parseArgs({
  options: {
    seed: { type: 'string', default: '1' },
    runs: { type: 'string', default: '2000' },
    clients: { type: 'string', default: '4' },
    real: { type: 'boolean', default: false },
  },
});

const whole = (name: 'runs' | 'clients', max: number): number => {
  const value = Number(values[name]);
  if (!Number.isInteger(value) || value < 1 || value > max)
    throw new Error(`--${name}: '${values[name]}' is not a whole number from 1 to ${max}`);
  return value;
};
const runs = whole('runs', 10_000_000);
const clients = whole('clients', 50);

const stop = new AbortController();
process.once('SIGINT', () => stop.abort());
process.once('SIGTERM', () => stop.abort());
const world = await ApiFuzzWorld.start(values.real ? 'qemu' : 'fake');
let report: ApiFuzzReport;
let left: string[];
try {
  report = await runApiFuzz({
    seed: values.seed,
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
console.log(report.lastLine(values.seed));
process.exitCode = report.clean && left.length === 0 ? 0 : 1;
