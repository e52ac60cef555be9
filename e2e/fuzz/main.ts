// `npm run fuzz -- --seed S`: one fuzzer run. The last line counts responses and findings; the exit
// status is 0 when no response was a 500, missing, or against the contract. `--only KIND`
// (repeatable) leaves out the other kinds of requests.
import { parseArgs } from 'node:util';
import { FUZZ_KINDS } from './kinds.ts';
import { runFuzz } from './run.ts';

const { values } = parseArgs({
  options: {
    seed: { type: 'string', default: '1' },
    requests: { type: 'string', default: '10000' },
    clients: { type: 'string', default: '6' },
    only: { type: 'string', multiple: true, default: FUZZ_KINDS.map(({ name }) => name) },
    driver: { type: 'string', default: process.env['BERTH_DRIVER'] ?? 'qemu' },
  },
});

const whole = (name: 'requests' | 'clients', max: number): number => {
  const value = Number(values[name]);
  if (!Number.isInteger(value) || value < 1 || value > max)
    throw new Error(`--${name}: '${values[name]}' is not a whole number from 1 to ${max}`);
  return value;
};
const kinds = values.only.map((name) => {
  const kind = FUZZ_KINDS.find((known) => known.name === name);
  if (kind === undefined)
    throw new Error(`--only: '${name}' is none of ${FUZZ_KINDS.map((known) => known.name).join(', ')}`);
  return kind;
});
const { driver, seed } = values;
if (driver !== 'qemu' && driver !== 'fake') throw new Error(`--driver: '${driver}' is none of qemu, fake`);

const stop = new AbortController();
process.once('SIGINT', () => stop.abort());
process.once('SIGTERM', () => stop.abort());
const report = await runFuzz({
  seed,
  requests: whole('requests', 10_000_000),
  clients: whole('clients', 50),
  kinds,
  driver,
  say: (line) => console.log(line),
  signal: stop.signal,
});
for (const line of report.tally()) console.log(line);
for (const { finding, what } of report.findings) console.log(`!! ${finding}: ${what}`);
console.log(report.lastLine(seed));
process.exitCode = report.clean ? 0 : 1;
