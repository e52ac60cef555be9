// Messages of the scripted agent that arrive late, after each event that may lie between: they have
// at most one effect, and the next message works.
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { act, awakeSandbox, sleepSandbox, waitForStatus, wakeSandbox } from '../../world/client.ts';
import { processesOf, killInGuest } from '../faults.ts';
import { SUITE_AGENTS, type SuiteAgent } from './agents.ts';
import { assertRefused, SessionCheck } from './session-check.ts';
import { startAgentWorld, type AgentWorld } from './world.ts';

const KEY = 'request-key.1';
const SCRIPT = ['say once'];

interface Delay {
  /** Happens between the message and its arrival. */
  between: (check: SessionCheck, turnId: string) => Promise<void>;
  /** Refusal of the late copy by the guest; null: it is taken. */
  arrives: string | null;
  /** State and reason of the turn at last, and its effects. */
  ends: ['completed' | 'failed', 'not_delivered' | 'machine_lost' | null, effects: 0 | 1];
}

const resend = async (check: SessionCheck, turnId: string): Promise<void> => {
  const { status, body } = await check.send('late', SCRIPT, KEY);
  const { state, ...rest } = body as { state: string };
  assert.deepEqual([status, rest], [202, { turnId, replayed: true }], state);
};

/** An inspection later than any delivery takes. */
const inspect = async (check: SessionCheck, turnId: string): Promise<void> => {
  const dispatched_at = new Date(Date.now() - 60_000);
  await check.world.db.updateTable('agent_turn').set({ dispatched_at }).where('id', '=', turnId).execute();
  await check.ends(turnId, 'failed', 'not_delivered');
};
const sleepAndWake = async ({ talk }: SessionCheck): Promise<void> => {
  await sleepSandbox(talk.caller, talk.sandboxId);
  await wakeSandbox(talk.caller, talk.sandboxId);
};
const recover = async (check: SessionCheck): Promise<void> => {
  await killInGuest(check.talk, 'bridge');
  await check.stopped('bridge_ended');
  assert.equal((await check.call('POST', '/recover')).status, 200);
};
const bootDisk = async (check: SessionCheck): Promise<void> => {
  const { caller, sandboxId } = check.talk;
  for (const pid of await processesOf(sandboxId)) process.kill(pid, 'SIGKILL');
  await waitForStatus(caller, sandboxId, ['failed']);
  await act(caller, sandboxId, 'wake');
  await waitForStatus(caller, sandboxId, ['running', 'ready']);
  assert.equal((await check.call('POST', '/recover')).status, 200);
};

const DELAYS: { readonly [event: string]: Delay } = {
  'nothing else': { between: async () => undefined, arrives: null, ends: ['completed', null, 1] },
  'a resend': { between: resend, arrives: null, ends: ['completed', null, 1] },
  'an inspection': { between: inspect, arrives: 'agent_turn_void', ends: ['failed', 'not_delivered', 0] },
  'a sleep and a wake': { between: sleepAndWake, arrives: null, ends: ['completed', null, 1] },
  'a sleep, a wake and a resend': {
    between: async (check, turnId) => {
      await sleepAndWake(check);
      await resend(check, turnId);
    },
    arrives: null,
    ends: ['completed', null, 1],
  },
  'a recovery': { between: recover, arrives: null, ends: ['completed', null, 1] },
  'an inspection and a recovery': {
    between: async (check, turnId) => {
      await inspect(check, turnId);
      await recover(check);
    },
    arrives: 'agent_turn_void',
    ends: ['failed', 'not_delivered', 0],
  },
  'a boot of the disk': { between: bootDisk, arrives: 'agent_run_over', ends: ['failed', 'machine_lost', 0] },
};

describe('a late message', () => {
  const agent = SUITE_AGENTS.find(({ real }) => real === null) as SuiteAgent;
  let world: AgentWorld;
  let sandboxId: string;
  before(async () => {
    world = await startAgentWorld();
    sandboxId = (await awakeSandbox(world.caller, { agent: agent.id })).id;
  });
  after(() => world[Symbol.asyncDispose]());

  for (const [event, { between, arrives, ends }] of Object.entries(DELAYS)) {
    const [state, reason, effects] = ends;
    it(`after ${event} has ${effects === 0 ? 'no effect' : 'one effect'}`, async () => {
      const check = await SessionCheck.start(world, agent, sandboxId);
      const held = world.link.holdMessage();
      const refused = assertRefused(await check.send('late', SCRIPT, KEY), 503, 'message_delivery_uncertain');
      const turnId = String(refused.turnId);
      await between(check, turnId);

      const arrived = await (await held).deliver();
      const { error } = arrived.body as { error?: { code: string } };
      assert.deepEqual([arrived.status, error?.code ?? null], [arrives === null ? 200 : 409, arrives]);
      await check.ends(turnId, state, reason);
      await resend(check, turnId);
      await check.run('next', ['say next']);
      assert.deepEqual(await check.texts(), effects === 0 ? ['next'] : ['once', 'next']);
      assert.equal((await check.talk.effects()).filter((id) => id === turnId).length, effects);
    });
  }
});
