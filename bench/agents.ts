// Figures of agent sessions through the public API: calls about a session of the scripted agent in
// a VM, relative to calls of comparable work, and pages of the list. Ratios are within this run.
// Usage: npm run bench:agents -- [--rounds N] [--sessions N] [--json]
import { parseArgs } from 'node:util';
import { Progress } from '@berth/machine/output/progress.ts';
import { measureCalls } from './agents/calls.ts';
import { measureDiscovery } from './agents/discovery.ts';
import { hardware } from './world/hardware.ts';
import { withWorld } from './world/installation.ts';
import { renderTable, rounded, type Figure } from './world/statistics.ts';

const { values } = parseArgs({
  options: {
    rounds: { type: 'string', default: '50' },
    sessions: { type: 'string', default: '100000' },
    json: { type: 'boolean', default: false },
  },
});
const whole = (name: 'rounds' | 'sessions', most: number): number => {
  const value = Number(values[name]);
  if (!Number.isInteger(value) || value < 1 || value > most)
    throw new Error(`--${name}: '${values[name]}' is not an integer from 1 to ${most}`);
  return value;
};
const rounds = whole('rounds', 10_000);
const sessions = whole('sessions', 1_000_000);

const progress = new Progress();
const calls = await withWorld(progress, { BERTH_SCRIPTED_AGENT: '1' }, (world) => measureCalls(world, rounds));
const pages = await progress.step(`pages of 100 and of ${sessions} sessions`, () =>
  measureDiscovery(sessions, rounds * 4),
);

const ratio = (one: Figure, other: Figure): number => Math.round((one.median / other.median) * 100) / 100;
const row = (label: string, figure: Figure, count = rounds) => ({ label, unit: 'ms', count, figure });
console.log(`\n${hardware()}\n`);
console.log(
  renderTable([
    row('create of a session, scripted agent', calls.createMs, 4),
    row('message to 202', calls.messageMs),
    row('  command `true`', calls.execMs),
    row('GET of the session', calls.pollMs),
    row('  live metrics', calls.metricsMs),
    row('50 of 100 sessions', pages.few, rounds * 4),
    row(`50 of ${sessions} sessions`, pages.many, rounds * 4),
  ]),
);
const figures = {
  messageRatio: ratio(calls.messageMs, calls.execMs),
  pollRatio: ratio(calls.pollMs, calls.metricsMs),
  discoveryRatio: ratio(pages.many, pages.few),
  bridgeMib: Math.round(calls.bridgeMib * 10) / 10,
};
for (const [name, value] of Object.entries(figures)) console.log(`${name}: ${value}`);
if (values.json) console.log(JSON.stringify({ ...figures, createMs: rounded(calls.createMs), rounds, sessions }));
