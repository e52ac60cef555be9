// Entries of the activity feed that the guest of an agent session causes without a request.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { PROMPTS_PER_MINUTE } from '@berth/contract/route/limits.ts';
import { sql } from 'kysely';
import { newId } from '../../../src/store/database/ids.ts';
import { startApi, type TestApi } from '../../world/api.ts';
import { AgentSessionUnderTest } from './agent-session.ts';

let api: TestApi;
before(async () => {
  api = await startApi({ durable: false });
});
after(() => api.close());

const entries = async (session: AgentSessionUnderTest, kind: string): Promise<Record<string, unknown>[]> =>
  (await session.events()).filter((event) => event.kind === kind).map(({ details }) => details);
const prompts = (session: AgentSessionUnderTest) => entries(session, 'agent_prompt_requested');

/** Shows another approval, and lets the API see it. */
async function show(session: AgentSessionUnderTest, requestId: number, turnId: string): Promise<void> {
  session.guest.change({ prompt: { requestId, turnId, kind: 'command', askedUnixMs: Date.now() } });
  assert.equal((await session.get()).status, 200);
}
async function aMinuteAgo(session: AgentSessionUnderTest, column: 'prompt_noted_at' | 'stop_noted_at'): Promise<void> {
  const at = sql<Date>`now() - interval '1 minute'`;
  await api.db
    .updateTable('agent_session')
    .set({ [column]: at })
    .where('id', '=', session.id)
    .execute();
}

test('replaced approvals get an entry a minute with their count, also without a further one', async () => {
  const session = await AgentSessionUnderTest.create(api);
  const turnId = await session.turn();
  for (let id = 1; id <= 4; id++) await show(session, id, turnId);
  const first = { requestId: 1, turnId, promptKind: 'command' };
  assert.deepEqual(await prompts(session), [first]);
  await aMinuteAgo(session, 'prompt_noted_at');
  await session.get();
  assert.deepEqual(await prompts(session), [first, { ...first, requestId: 4, count: 3 }]);
  await session.get();
  assert.equal((await prompts(session)).length, 2);
});

test('an approval after an answer or a message gets its entry at once', async () => {
  const session = await AgentSessionUnderTest.create(api);
  const turnId = await session.turn();
  for (let time = 1; time <= 2; time++) {
    const requestId = session.guest.ask();
    await session.get();
    assert.equal((await session.answer(requestId)).status, 200);
  }
  session.guest.ask();
  await session.get();
  session.guest.end();
  const next = await session.turn();
  session.guest.ask();
  await session.get();
  const asked = (await prompts(session)).map(({ turnId: of, count }) => [of, count]);
  assert.deepEqual(
    asked,
    [turnId, turnId, turnId, next].map((of) => [of, undefined]),
  );
});

test('approvals that replace each other faster than anyone can answer end the turn', async () => {
  const session = await AgentSessionUnderTest.create(api);
  const turnId = await session.turn();
  for (let id = 0; id <= PROMPTS_PER_MINUTE; id++) await show(session, id, turnId);
  assert.equal((await session.turnRow(turnId))?.state, 'running');
  await show(session, PROMPTS_PER_MINUTE + 1, turnId);
  const row = await session.turnRow(turnId);
  assert.deepEqual([row?.state, row?.reason], ['failed', 'agent_error']);
  for (let id = 100; id < 120; id++) await show(session, id, turnId);
  assert.equal((await session.get()).body.pendingInput, null);
  assert.equal((await prompts(session)).length, 1);
});

test("an approval of a turn that is not the session's active one is ignored", async () => {
  const session = await AgentSessionUnderTest.create(api);
  const other = await AgentSessionUnderTest.create(api);
  const past = await session.turn();
  session.guest.end();
  await session.turn();
  for (const turnId of [newId('agentTurn'), await other.turn(), past]) {
    await show(session, 1, turnId);
    const { body } = await session.get();
    assert.deepEqual([body.pendingInput, body.needsYou], [null, false], turnId);
  }
  assert.deepEqual(await prompts(session), []);
});

test('a bridge that stops again and again gets an entry a minute, and one at once after a recover', async () => {
  const session = await AgentSessionUnderTest.create(api);
  const stop = async (): Promise<number> => {
    for (let time = 1; time <= 3; time++) {
      session.guest.change({ bridge: 'stopped', bridgeReason: 'agent_ended' });
      await session.get();
      session.guest.change({ bridge: 'ready', bridgeReason: null });
      await session.get();
    }
    return (await entries(session, 'agent_session_stopped')).length;
  };
  assert.equal(await stop(), 1);
  assert.equal((await session.call('POST', '/recover')).status, 200);
  assert.equal(await stop(), 2);
  await aMinuteAgo(session, 'stop_noted_at');
  assert.equal(await stop(), 3);
});
