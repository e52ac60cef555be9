// `npm run chaos -- --minutes N --seed S`: one chaos run. The last line counts losses, leaks and
// metering errors; the exit status is 0 when there are none. `--only KIND` (repeatable) leaves out
// the other faults. `--plan N` prints the first N operations of each client and the first N faults
// of a seed, and runs nothing.
import { agentOperationsOf } from './agents/plan.ts';
import { DISTURBANCE_KINDS, disturbancesOf, operationsOf } from './model/plan.ts';
import { Random } from '../world/random.ts';
import { interruption, readOptions } from '../world/options.ts';
import { runChaos } from './run.ts';

const options = readOptions('berth chaos', {
  minutes: { type: 'string', default: '10' },
  seed: { type: 'string', default: '1' },
  clients: { type: 'string', default: '3' },
  agents: { type: 'string', default: '2' },
  driver: { type: 'string', default: 'qemu' },
  'disturbance-ms': { type: 'string', default: '6000' },
  only: { type: 'string', multiple: true, default: [...DISTURBANCE_KINDS] },
  plan: { type: 'string' },
});
const { values } = options;
const disturbances = options.chosen('only', DISTURBANCE_KINDS);
const [driver = 'qemu'] = options.chosen('driver', ['qemu', 'fake']);
const asked = options.whole('clients', 0, 20);
// Their operations and faults need VMs.
const clients = driver === 'fake' ? 0 : asked;
const agents = options.whole('agents', 0, 20);
const disturbanceMs = options.number('disturbance-ms', 100, 600_000);

if (values.plan === undefined) {
  const minutes = options.number('minutes', 0.1, 10_000);
  const report = await runChaos({
    seed: values.seed,
    minutes,
    clients,
    agents,
    driver,
    disturbanceMs,
    disturbances,
    say: (line) => console.log(line),
    signal: interruption(),
  });
  report.conclude(report.lastLine(values.seed, minutes));
} else {
  const random = new Random(values.seed);
  const first = options.whole('plan', 1, 100_000);
  const print = (who: string, steps: Generator<unknown, never>): void => {
    for (let step = 0; step < first; step += 1) console.log(`${who} ${JSON.stringify(steps.next().value)}`);
  };
  for (let client = 1; client <= clients; client += 1) print(`c${client}`, operationsOf(random.fork(`c${client}`)));
  for (let agent = 1; agent <= agents; agent += 1) print(`a${agent}`, agentOperationsOf(random.fork(`a${agent}`)));
  print('disturbances', disturbancesOf(random.fork('disturbances'), disturbanceMs, disturbances));
}
