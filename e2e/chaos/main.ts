// `npm run chaos -- --minutes N --seed S`: one chaos run. The last line counts losses, leaks and
// metering errors; the exit status is 0 when there are none. `--only KIND` (repeatable) leaves out
// the other faults. `--plan N` prints the first N operations of each client and the first N faults
// of a seed, and runs nothing.
import { parseArgs } from 'node:util';
import { DISTURBANCE_KINDS, disturbancesOf, operationsOf, type DisturbanceKind } from './model/plan.ts';
import { Random } from '../world/random.ts';
import { runChaos } from './run.ts';

const { values } = parseArgs({
  options: {
    minutes: { type: 'string', default: '10' },
    seed: { type: 'string', default: '1' },
    clients: { type: 'string', default: '3' },
    'disturbance-ms': { type: 'string', default: '6000' },
    only: { type: 'string', multiple: true, default: [...DISTURBANCE_KINDS] },
    plan: { type: 'string' },
  },
});

const number = (name: 'minutes' | 'clients' | 'disturbance-ms' | 'plan', min: number, max: number): number => {
  const value = Number(values[name]);
  if (!Number.isFinite(value) || value < min || value > max)
    throw new Error(`--${name}: '${values[name]}' is not a number from ${min} to ${max}`);
  return value;
};
const disturbances = values.only.map((name): DisturbanceKind => {
  const kind = DISTURBANCE_KINDS.find((known) => known === name);
  if (kind === undefined) throw new Error(`--only: '${name}' is none of ${DISTURBANCE_KINDS.join(', ')}`);
  return kind;
});
const clients = number('clients', 1, 20);
const disturbanceMs = number('disturbance-ms', 100, 600_000);

if (values.plan === undefined) {
  const minutes = number('minutes', 0.1, 10_000);
  const stop = new AbortController();
  process.once('SIGINT', () => stop.abort());
  process.once('SIGTERM', () => stop.abort());
  const report = await runChaos({
    seed: values.seed,
    minutes,
    clients,
    disturbanceMs,
    disturbances,
    say: (line) => console.log(line),
    signal: stop.signal,
  });
  for (const line of report.tally()) console.log(line);
  for (const { finding, what } of report.findings) console.log(`!! ${finding}: ${what}`);
  console.log(report.lastLine(values.seed, minutes));
  process.exitCode = report.clean ? 0 : 1;
} else {
  const random = new Random(values.seed);
  const first = number('plan', 1, 100_000);
  const print = (who: string, steps: Generator<unknown, never>): void => {
    for (let step = 0; step < first; step += 1) console.log(`${who} ${JSON.stringify(steps.next().value)}`);
  };
  for (let client = 1; client <= clients; client += 1) print(`c${client}`, operationsOf(random.fork(`c${client}`)));
  print('disturbances', disturbancesOf(random.fork('disturbances'), disturbanceMs, disturbances));
}
