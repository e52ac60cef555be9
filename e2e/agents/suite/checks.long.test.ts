// Runs the suite for every agent: the real ones with scripted models, and the scripted one.
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { awakeSandbox } from '../../world/client.ts';
import { SUITE_AGENTS } from './agents.ts';
import { CHECKS } from './checks.ts';
import { SessionCheck } from './session-check.ts';
import { startAgentWorld, type AgentWorld } from './world.ts';

it('the suite has twenty checks', () => {
  assert.equal(Object.keys(CHECKS).length, 20);
});

for (const agent of SUITE_AGENTS) {
  // The pinned packages are those of x86-64.
  describe(agent.name, { skip: agent.real !== null && process.arch !== 'x64' }, () => {
    let world: AgentWorld;
    let sandboxId: string;
    before(async () => {
      world = await startAgentWorld(agent.real === null ? {} : { agents: { [agent.id]: agent.real } });
      sandboxId = (await awakeSandbox(world.caller, { agent: agent.id })).id;
    });
    after(() => world[Symbol.asyncDispose]());

    for (const [title, check] of Object.entries(CHECKS))
      it(title, async () => check(await SessionCheck.start(world, agent, sandboxId)));
  });
}
