// Figures of agent sessions through the public API: calls about a session of the scripted agent in
// a VM, relative to calls of comparable work; pages of the list; starts of the real agents; the
// model gateway; the cost of the agents in the image. Ratios are within this run.
// Usage: npm run bench:agents -- [--rounds N] [--starts N] [--sessions N] [--json]
import { Progress } from '@berth/machine/output/progress.ts';
import { measureCalls } from './agents/calls.ts';
import { measureDiscovery } from './agents/discovery.ts';
import { measureImage } from './agents/images.ts';
import { measureRealAgents } from './agents/real.ts';
import { gatewayRatios } from './model-gateway/ratio.ts';
import { hardware } from './world/hardware.ts';
import { withWorld } from './world/installation.ts';
import { readOptions } from './world/options.ts';
import { renderTable, round, rounded, type Figure } from './world/statistics.ts';

const options = readOptions({
  rounds: { type: 'string', default: '50' },
  starts: { type: 'string', default: '3' },
  sessions: { type: 'string', default: '100000' },
  json: { type: 'boolean', default: false },
});
const rounds = options.whole('rounds', 1, 10_000);
const starts = options.whole('starts', 1, 100);
const sessions = options.whole('sessions', 1, 1_000_000);

const progress = new Progress();
const calls = await withWorld(progress, { BERTH_SCRIPTED_AGENT: '1' }, (world) => measureCalls(world, rounds));
const pages = await progress.step(`pages of 100 and of ${sessions} sessions`, () =>
  measureDiscovery(sessions, rounds * 4),
);
const { codex, claude } = await measureRealAgents(progress, starts);
const gateway = await progress.step('the model gateway', () => gatewayRatios(5));
const images = { both: await measureImage(progress, ''), none: await measureImage(progress, 'none') };

const ratio = (one: Figure, other: Figure): number => round(one.median / other.median, 2);
const row = (label: string, figure: Figure, count = rounds) => ({ label, unit: 'ms', count, figure });
console.log(`\n${hardware()}\n`);
console.log(
  renderTable([
    row('create of a session, scripted agent', calls.createMs, 4),
    row('create of a session, Codex', codex.createMs, starts),
    row('  its program by hand', codex.byHandMs, starts),
    row('  message to the call of the model', codex.startedMs, starts),
    row('create of a session, Claude Code', claude.createMs, starts),
    row('  its program by hand', claude.byHandMs, starts),
    row('  message to the call of the model', claude.startedMs, starts),
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
  gatewayRatio: round(gateway.model.ratio, 2),
  idleVmRatio: ratio(images.both.vmMib, images.none.vmMib),
  imageGrowthMib: images.both.imageMib - images.none.imageMib,
  bridgeMib: round(calls.bridgeMib),
};
const ofAgents = Object.entries({ codex, claude }).map(([name, agent]) => {
  const { bridgeMib, agentMib, snapshotGrowthMib } = agent;
  return [
    name,
    {
      createRatio: ratio(agent.createMs, agent.byHandMs),
      ...{ createMs: rounded(agent.createMs), startedMs: rounded(agent.startedMs) },
      ...{ bridgeMib: round(bridgeMib), agentMib: round(agentMib), snapshotGrowthMib: round(snapshotGrowthMib) },
    },
  ] as const;
});
for (const [name, value] of Object.entries(figures)) console.log(`${name}: ${value}`);
for (const [name, { createMs: _, startedMs: __, ...rest }] of ofAgents) {
  console.log(
    `${name}: ${Object.entries(rest)
      .map((pair) => pair.join(' '))
      .join(', ')}`,
  );
}
const made = { ...figures, ...Object.fromEntries(ofAgents), createMs: rounded(calls.createMs) };
if (options.values.json) console.log(JSON.stringify({ ...made, rounds, starts, sessions }));
