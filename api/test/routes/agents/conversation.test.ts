// Replies, turns, approvals and interrupts of agent sessions.
import assert from 'node:assert/strict';
import { after, before, beforeEach, test } from 'node:test';
import { newId } from '../../../src/store/database/ids.ts';
import { startApi, type Answer, type TestApi } from '../../world/api.ts';
import { AgentSessionUnderTest, assertRefused } from './agent-session.ts';
import { ExecRefusal } from '../../world/guests/exec-refusal.ts';

let api: TestApi;
before(async () => {
  api = await startApi({ durable: false });
});
after(() => api.close());
beforeEach(() => {
  api.agents.before = () => undefined;
  api.agents.after = () => undefined;
});

const create = (): Promise<AgentSessionUnderTest> => AgentSessionUnderTest.create(api);
const textsOf = ({ body }: Answer): string[] => body.messages.map(({ text }: { text: string }) => text);
const page = (cursor: string, more = ''): string => `?after=${cursor}${more}`;

test('each caller reads all replies once with its own cursor, whatever others and pollers do', async () => {
  const session = await create();
  const empty = await session.output();
  assert.deepEqual(empty.body, { messages: [], nextCursor: empty.body.nextCursor, hasMore: false });
  const turnId = await session.turn();
  for (const text of ['one', 'two', 'three']) session.guest.reply(text);
  await session.get();

  const first = await session.output(page(empty.body.nextCursor, '&limit=2'));
  assert.deepEqual([textsOf(first), first.body.hasMore], [['one', 'two'], true]);
  const { seq, turnId: of, truncated } = first.body.messages[0];
  assert.deepEqual([seq, of, truncated], [1, turnId, false]);
  const rest = await session.output(page(first.body.nextCursor));
  assert.deepEqual([textsOf(rest), rest.body.hasMore], [['three'], false]);
  assert.deepEqual(textsOf(await session.output()), ['one', 'two', 'three']);
  assert.deepEqual(textsOf(await session.output(page(rest.body.nextCursor))), []);
});

test('a cursor of another session, of another list or of nobody is 400', async () => {
  const [session, other] = [await create(), await create()];
  const { nextCursor } = (await other.output()).body;
  const turns = (await session.call('GET', '/turns')).body;
  for (const cursor of [nextCursor, turns.nextCursor, 'nonsense', '0'])
    assertRefused(await session.output(page(cursor)), 400, 'invalid_request');
});

test('held output returns with the first reply, and empty at the end of its time', async () => {
  const session = await create();
  await session.turn();
  const headers = { prefer: 'wait=1' };
  const none = await session.output('', { headers });
  assert.deepEqual(textsOf(none), []);
  assert.equal(none.headers.get('preference-applied'), 'wait=1');
  const held = session.output('', { headers: { prefer: 'wait=60' } });
  session.guest.reply('at last');
  const answer = await held;
  assert.equal(answer.headers.get('preference-applied'), 'wait=25');
  assert.deepEqual(textsOf(answer), ['at last']);
});

test('a guest whose replies are out of order gets no page through', async () => {
  const session = await create();
  await session.turn();
  session.guest.reply('one');
  session.guest.replies.push({ ...session.guest.replies[0]!, text: 'again' });
  assertRefused(await session.output(), 503, 'sandbox_unreachable');
});

test('the turns of a session have their messages and authors', async () => {
  const session = await create();
  const turnId = await session.turn('Add a test');
  const { body } = await session.call('GET', '/turns');
  assert.equal(body.turns.length, 1);
  const { text, author, number, state } = body.turns[0];
  assert.deepEqual([body.turns[0].turnId, text, number, state], [turnId, 'Add a test', 1, 'running']);
  assert.deepEqual(author, { kind: 'api_key', userId: api.userId });
  assert.deepEqual((await session.call('GET', `/turns${page(body.nextCursor)}`)).body.turns, []);
});

test('a pending approval is shown with its text, answered once, and repeated answers succeed', async () => {
  const session = await create();
  const turnId = await session.turn();
  const requestId = session.guest.ask();
  const { needsYou, waitingOn, pendingInput, communication } = (await session.get()).body;
  assert.deepEqual([needsYou, waitingOn, communication.status], [true, 'approval', 'needs_input']);
  assert.deepEqual(
    [pendingInput.requestId, pendingInput.turnId, pendingInput.kind, pendingInput.title, pendingInput.detail],
    [requestId, turnId, 'command', 'Run a command', 'true'],
  );
  assert.deepEqual(pendingInput.decisions, ['accept', 'decline', 'cancel']);
  const listed = (await api.call('GET', `/v1/agent-sessions?sandboxId=${session.sandboxId}`)).body.sessions[0];
  assert.deepEqual([listed.needsYou, listed.pendingInput.title], [true, null]);

  for (const stale of [requestId + 1, String(requestId), 0.5, 'x'])
    assertRefused(await session.answer(stale), 409, 'agent_prompt_not_pending');
  const answered = await session.answer(requestId, 'decline');
  assert.deepEqual(answered.body, { requestId, decision: 'decline', repeated: false, turnId, turnState: 'running' });
  assert.equal((await session.answer(requestId, 'decline')).body.repeated, true);
  assertRefused(await session.answer(requestId, 'accept'), 409, 'agent_prompt_not_pending');
  assert.equal((await session.get()).body.needsYou, false);
  const kinds = (await session.events()).map(({ kind }) => kind);
  assert.deepEqual(
    kinds.filter((kind) => kind.startsWith('agent_prompt')),
    ['agent_prompt_requested', 'agent_prompt_answered', 'agent_prompt_answered'],
  );
});

test('an approval shows characters that hide or reorder its text, also to programs', async (t) => {
  const session = await create();
  await session.turn();
  session.guest.ask();
  const before = api.agents.promptText;
  t.after(() => void (api.agents.promptText = before));
  api.agents.promptText = { title: 'Run \u202etest', detail: `line\n\u200b${'\u202e'.repeat(10_000)}` };
  const { title, detail, truncated } = (await session.get()).body.pendingInput;
  assert.deepEqual(
    [title, detail.slice(0, 21), detail.length, truncated],
    [String.raw`Run \u{202e}test`, 'line\n\\u{200b}\\u{202e}', 4_096, true],
  );
  const whole = (await session.get('?detail=full')).body.pendingInput;
  assert.equal(whole.detail.length, 'line\n'.length + 8 * 10_001);
});

for (const body of [
  {},
  { requestId: 1 },
  { decision: 'accept' },
  { requestId: 1, decision: 'yes' },
  { requestId: null, decision: 'accept' },
]) {
  test(`the answer ${JSON.stringify(body)} is 400`, async () => {
    assertRefused(await (await create()).call('POST', '/answer', { body }), 400, 'invalid_request');
  });
}

test('an interrupt is requested for the active turn only', async () => {
  const session = await create();
  assertRefused(await session.call('POST', '/interrupt'), 409, 'agent_turn_not_active');
  const turnId = await session.turn();
  assert.deepEqual((await session.call('POST', '/interrupt')).body, { turnId, state: 'interrupting' });
  session.guest.end('canceled');
  assert.equal((await session.get()).body.turnState, 'canceled');
});

test('a turn never leaves its final state, and takes only legal steps, whatever the guest says', async () => {
  const session = await create();
  const turnId = await session.turn();
  session.guest.end('completed');
  await session.get();
  for (const state of ['running', 'failed', 'canceled', 'void'] as const) {
    session.guest.change({ turn: { turnId, state, reason: null, startedUnixMs: 0, endedUnixMs: null } });
    assert.equal((await session.get()).body.turnState, 'completed');
  }
});

test('a view of another session, or one that violates the protocol, changes nothing and is no 500', async () => {
  const [session, victim] = [await create(), await create()];
  await victim.turn();
  const before = (await victim.get()).body;
  for (const lie of [
    { sessionId: victim.id, bridge: 'stopped' as const },
    { bridge: 'odd' as 'ready' },
    { revision: -1 },
    { runId: 'x' },
    { lastSeq: 1e300 },
  ]) {
    const { view } = session.guest;
    session.guest.view = { ...view, revision: view.revision + 1, ...lie };
    assert.equal((await session.get()).status, 200);
    assert.ok([202, 409, 503].includes((await session.send('a')).status));
    session.guest.view = view;
  }
  const { stateAt: _, revision: __, ...after } = (await victim.get()).body;
  const { stateAt: ___, revision: ____, ...expected } = before;
  assert.deepEqual(after, expected);
});

test('failures of host and guest are coded, and say what may have happened', async () => {
  const session = await create();
  await session.turn();
  const requestId = session.guest.ask();
  for (const [code, shown] of [
    ['guest_unreachable', 'sandbox_unreachable'],
    ['vm_not_running', 'sandbox_unreachable'],
  ] as const) {
    api.agents.before = () => {
      throw new ExecRefusal(code, 'no');
    };
    assertRefused(await session.output(), 503, shown);
    assert.match(assertRefused(await session.answer(requestId), 503, shown).error.message, /may or may not/);
    assertRefused(await session.call('POST', '/interrupt'), 503, shown);
    assert.equal((await session.get()).status, 200, 'a read falls back to the last known state');
  }
});

test('an end of the turn without its sender is in the feed once', async () => {
  const session = await create();
  session.guest.begin(newId('agentTurn'), 'x', '');
  session.guest.end();
  await session.get();
  assert.deepEqual(
    (await session.events()).map(({ kind }) => kind),
    ['agent_session_created'],
    'a turn that this service did not send is no event',
  );
});
