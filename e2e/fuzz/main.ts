// `npm run fuzz -- --seed S`: one fuzzer run. The last line counts responses and findings; the exit
// status is 0 when no response was a 500, missing, or against the contract. `--only KIND`
// (repeatable) leaves out the other kinds of requests.
import { interruption, readOptions } from '../world/options.ts';
import { FUZZ_KINDS } from './kinds.ts';
import { runFuzz } from './run.ts';

const options = readOptions('berth fuzz', {
  seed: { type: 'string', default: '1' },
  requests: { type: 'string', default: '10000' },
  clients: { type: 'string', default: '6' },
  only: { type: 'string', multiple: true, default: FUZZ_KINDS.map(({ name }) => name) },
  driver: { type: 'string', default: process.env['BERTH_DRIVER'] ?? 'qemu' },
});
const requests = options.whole('requests', 1, 10_000_000);
const clients = options.whole('clients', 1, 50);
const kinds = options.chosen(
  'only',
  FUZZ_KINDS.map(({ name }) => name),
);
const [driver = 'qemu'] = options.chosen('driver', ['qemu', 'fake']);
const { seed } = options.values;

const report = await runFuzz({
  seed,
  requests,
  clients,
  kinds: FUZZ_KINDS.filter(({ name }) => kinds.includes(name)),
  driver,
  say: (line) => console.log(line),
  signal: interruption(),
});
report.conclude(report.lastLine(seed));
