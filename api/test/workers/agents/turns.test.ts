// The watch of active turns: turns that keep a sandbox awake, and sandboxes that it leaves alone.
// Tests write the past into the rows.
import assert from 'node:assert/strict';
import { after, before, beforeEach, test } from 'node:test';
import type { VmView } from '@berth/protocol/host.ts';
import { AgentTurns } from '../../../src/workers/agents/turns.ts';
import { insertAgentSession } from '../../../src/store/agents/sessions.ts';
import { IdleWatch } from '../../../src/workers/sandboxes/idle.ts';
import { AgentSessionUnderTest } from '../../routes/agents/agent-session.ts';
import { startApi, type TestApi } from '../../world/api.ts';

const HOUR_OF_TICKS = 720;

let api: TestApi;
before(async () => {
  api = await startApi({ durable: false });
});
after(() => api.close());
beforeEach(async () => {
  await api.db
    .updateTable('sandbox')
    .set({ status: 'deleted', deleted_at: new Date() })
    .where('status', '<>', 'deleted')
    .execute();
  await api.db.deleteFrom('agent_turn').execute();
  api.steps.length = 0;
  api.agents.before = () => undefined;
});

function watchTurns(leads = true, withTurns = true): AgentTurns {
  const { db, hosts, log } = api.context;
  const context = { db, hosts, log, stopping: new AbortController().signal };
  return new AgentTurns({ context, session: { isLeader: () => Promise.resolve(leads) }, withTurns });
}

/** Two passes of the idle watch over VMs without CPU time. */
async function watchIdle(): Promise<void> {
  const { db, hosts, log, lifecycle } = api.context;
  const ids = await api.db.selectFrom('sandbox').select('id').where('status', '=', 'ready').execute();
  api.front.listVms = () => ids.map(({ id }): VmView => ({ id, epoch: 1, status: 'running', cpuMs: 1_000 }));
  const context = { db, hosts, log, stopping: new AbortController().signal };
  const session = { isLeader: () => Promise.resolve(true) };
  const idle = new IdleWatch({ context, lifecycle, session, cpuSpanMs: 0 });
  await idle.tick();
  await idle.tick();
}

async function activeTurn(): Promise<AgentSessionUnderTest> {
  const session = await AgentSessionUnderTest.create(api);
  await session.turn('work');
  return session;
}

/** The sandbox was last used longer ago than its idle time. */
async function unused({ sandboxId }: AgentSessionUnderTest): Promise<void> {
  const at = new Date(Date.now() - 31 * 60_000);
  await api.db.updateTable('sandbox').set({ last_active_at: at }).where('id', '=', sandboxId).execute();
}

async function statusOf({ sandboxId }: AgentSessionUnderTest): Promise<string> {
  const row = api.db.selectFrom('sandbox').select('status').where('id', '=', sandboxId);
  return (await row.executeTakeFirstOrThrow()).status;
}

/** Looks of the watch after the idle time; `between` happens between two of them. */
async function lookedAt(session: AgentSessionUnderTest, between: () => void): Promise<string> {
  const turns = watchTurns();
  await turns.tick();
  between();
  await unused(session);
  await turns.tick();
  await watchIdle();
  return await statusOf(session);
}

test('a turn with signs of life keeps its sandbox awake past the idle time without pollers', async () => {
  const session = await activeTurn();
  assert.equal(await lookedAt(session, () => session.guest.reply('still working')), 'ready');
});

test('a turn that waits for a person does not keep its sandbox awake', async () => {
  const session = await activeTurn();
  const status = await lookedAt(session, () => {
    session.guest.reply('about to ask');
    session.guest.ask();
  });
  assert.equal(status, 'sleeping');
});

test('a turn without signs of life does not keep its sandbox awake', async () => {
  assert.equal(await lookedAt(await activeTurn(), () => undefined), 'sleeping');
});

test('a finished turn does not keep its sandbox awake, and its end is recorded without pollers', async () => {
  const session = await activeTurn();
  const turnId = String(session.guest.view.turn?.turnId);
  const status = await lookedAt(session, () => {
    session.guest.reply('done');
    session.guest.end();
  });
  assert.equal(status, 'sleeping');
  assert.equal((await session.turnRow(turnId))?.state, 'completed');
});

test('an hour of looks and polls of a sleeping session wakes nothing and calls no host', async () => {
  const session = await activeTurn();
  await api.db.updateTable('sandbox').set({ status: 'stopped' }).where('id', '=', session.sandboxId).execute();
  const calls = api.agents.calls.length;
  const turns = watchTurns();
  for (let tick = 0; tick < HOUR_OF_TICKS; tick += 1) {
    await turns.tick();
    const { status, body } = await session.get();
    assert.deepEqual([status, body.bridgeState, body.communication.status], [200, 'suspended', 'asleep']);
  }
  assert.equal(api.agents.calls.length, calls);
  assert.deepEqual(api.steps, []);
  assert.equal(await statusOf(session), 'stopped');
});

test('a session without a turn that stops is noticed without pollers', async () => {
  const session = await AgentSessionUnderTest.create(api);
  const stored = async (): Promise<string> => {
    const row = api.db.selectFrom('agent_session').select('bridge_state').where('id', '=', session.id);
    return (await row.executeTakeFirstOrThrow()).bridge_state;
  };
  session.guest.change({ bridge: 'stopped', bridgeReason: 'agent_ended' });
  await watchTurns().tick();
  assert.equal(await stored(), 'ready');
  const quiet = watchTurns(true, false);
  await quiet.tick();
  assert.equal(await stored(), 'stopped');
  const calls = api.agents.calls.length;
  await quiet.tick();
  assert.equal(api.agents.calls.length, calls);
});

test('a guest that reports an approval of a stopped bridge shows none', async () => {
  const session = await activeTurn();
  session.guest.ask();
  session.guest.change({ bridge: 'stopped', bridgeReason: 'agent_ended' });
  await watchTurns().tick();
  const { bridgeState, needsYou, pendingInput } = (await session.get()).body;
  assert.deepEqual([bridgeState, needsYou, pendingInput], ['stopped', false, null]);
});

test('a replica that does not lead looks at nothing', async () => {
  await activeTurn();
  const calls = api.agents.calls.length;
  await watchTurns(false).tick();
  assert.equal(api.agents.calls.length, calls);
});

test('a look that fails changes nothing, and the other sandboxes are looked at', async () => {
  const [broken, working] = [await activeTurn(), await activeTurn()];
  const turnId = String(broken.guest.view.turn?.turnId);
  api.agents.before = ({ vmId }) => {
    if (vmId === broken.sandboxId) throw new Error('the guest is broken');
  };
  working.guest.end();
  const turns = watchTurns();
  await turns.tick();
  assert.equal((await broken.turnRow(turnId))?.state, 'running');
  const ended = await working.get();
  assert.equal(ended.body.turnState, 'completed');
  api.agents.before = () => undefined;
  broken.guest.end();
  await turns.tick();
  assert.equal((await broken.turnRow(turnId))?.state, 'completed');
});

test('sessions that the API does not know are ignored', async () => {
  const session = await activeTurn();
  const foreign = await activeTurn();
  const turnId = String(foreign.guest.view.turn?.turnId);
  // A hostile guest reports the end of another sandbox's turn as that of its own.
  const forged = api.agents.add(session.sandboxId, foreign.id);
  forged.begin(turnId, 'forged', 'nobody');
  forged.end();
  await watchTurns().tick();
  assert.equal((await foreign.turnRow(turnId))?.state, 'running');
});

test('a session whose start was lost with its process is stopped, and can be recovered', async () => {
  const sandbox = await api.makeSandbox('ready');
  const lost = await insertAgentSession(api.db, sandbox, { kind: 'api_key', id: 'key_lost', userId: 'usr_lost' });
  const session = new AgentSessionUnderTest(api, sandbox.id, lost.id);
  await watchTurns().tick();
  assert.equal((await session.get()).body.bridgeState, 'starting');

  const at = new Date(Date.now() - 121_000);
  await api.db.updateTable('agent_session').set({ updated_at: at }).where('id', '=', lost.id).execute();
  await watchTurns().tick();
  const { bridgeState, bridgeReason, communication } = (await session.get()).body;
  assert.deepEqual([bridgeState, bridgeReason], ['stopped', 'not_ready']);
  assert.ok(communication.capabilities.includes('recovery'));
  assert.equal((await session.call('POST', '/recover')).body.bridgeState, 'ready');
  assert.deepEqual(
    (await session.events()).map(({ kind, actor_id: by }) => [kind, by === 'key_lost']),
    [
      ['agent_session_created', true],
      ['agent_session_recovered', false],
    ],
  );
});
