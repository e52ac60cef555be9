// Requests of agent sessions: deadlines, losses, pauses, and values of later versions.
import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import type { AgentSessionData, BerthError } from '../src/index.ts';
import { TestServer } from '../src/testing/index.ts';
import { notePauses } from './clock.ts';
import { against, broken, failureOf, json, refusal, type Answer } from './scripted-server.ts';

/** A record of the service with one turn; changes are as a later version may send them. */
async function record(changes: Record<string, unknown>, turn: Record<string, unknown> = {}): Promise<AgentSessionData> {
  const sandbox = await new TestServer().client().sandboxes.create({ agent: 'agent_one' });
  const { data } = await sandbox.agents.start();
  const at = data.createdAt;
  const recentTurns = [{ turnId: 'trn_1', state: 'running', reason: null, startedAt: at, endedAt: null, ...turn }];
  return { ...data, id: 'ags_1', turnId: 'trn_1', recentTurns, ...changes };
}

const ended = (revision = 'end'): Promise<AgentSessionData> =>
  record({ revision }, { state: 'completed', endedAt: '2026-11-21T09:30:00.000Z' });

async function turnAgainst(t: TestContext, answers: readonly Answer[]) {
  const session = await record({ revision: '1' });
  const { berth, seen } = await against(t, [json(200, session), ...answers]);
  const turn = (await berth.agents.get('ags_1')).turn('trn_1');
  seen.length = 0;
  return { turn, seen };
}

test('create and recover wait 90 s for the agent', async (t) => {
  const { berth } = await against(t, [json(201, await record({})), json(200, await record({}))]);
  const delays: (number | undefined)[] = [];
  const real = globalThis.setTimeout;
  t.mock.method(globalThis, 'setTimeout', (run: () => void, ms?: number) => {
    delays.push(ms);
    return real(run, ms);
  });
  await (await berth.agents.start('sbx_1')).recover();
  assert.equal(delays.filter((ms) => ms === 90_000).length, 2, delays.join());
});

test('a message is sent once with a random key; a lost response leaves the key in the error', async (t) => {
  const { berth, seen } = await against(t, [json(200, await record({})), broken]);
  const session = await berth.agents.get('ags_1');
  const errors = [await failureOf(session.send('hello')), await failureOf(session.send('hello'))];
  const sent = seen.slice(1).map(({ body }) => JSON.parse(body) as { text: string; requestKey: string });
  assert.equal(sent.length, 2, 'no retry');
  assert.notEqual(sent[0]?.requestKey, sent[1]?.requestKey);
  for (const [index, { requestKey = '', code, retryable, message }] of errors.entries()) {
    assert.match(requestKey, /^[0-9a-f]{32}$/);
    assert.equal(requestKey, sent[index]?.requestKey);
    assert.deepEqual([code, retryable], ['connection_failed', true]);
    assert.match(message, new RegExp(`Send it again with the requestKey ${requestKey}`));
  }
});

for (const [what, call, repeatable] of [
  ['an answer', (berth) => berth.agents.get('ags_1').then((one) => one.answer(1, 'accept')), true],
  ['an interrupt', (berth) => berth.agents.get('ags_1').then((one) => one.interrupt()), false],
  ['a recover', (berth) => berth.agents.get('ags_1').then((one) => one.recover()), true],
  ['a start', (berth) => berth.agents.get('ags_1').then(() => berth.agents.start('sbx_1')), false],
] as const satisfies readonly [
  string,
  (berth: Awaited<ReturnType<typeof against>>['berth']) => Promise<unknown>,
  boolean,
][]) {
  test(`${what} is never retried, and its error tells whether a retry is safe`, async (t) => {
    const { berth, seen } = await against(t, [json(200, await record({})), refusal(503, 'host_unavailable')]);
    const { retryable } = await failureOf(call(berth));
    assert.equal(seen.length, 2);
    assert.equal(retryable, repeatable);
  });
}

test('agents, states and kinds of later versions pass through, and an unknown final state ends a turn', async (t) => {
  const pendingInput = { requestId: 'a', turnId: 'trn_1', kind: 'robot', decisions: ['maybe'], askedAt: 'x' };
  const communication = { status: 'dreaming', capabilities: ['telepathy'] };
  const later = await record({ agent: 'agent_nine', bridgeState: 'odd', pendingInput, communication, revision: '2' });
  const over = await record({ revision: '3' }, { state: 'archived', reason: 'tired', endedAt: 'x' });
  const { turn, seen } = await turnAgainst(t, [json(200, later), json(200, over)]);
  const asked: string[] = [];
  const end = await turn.done({
    onApproval: ({ kind }) => {
      asked.push(kind);
      return undefined;
    },
  });
  assert.deepEqual([end.state, end.reason, asked], ['archived', 'tired', ['robot']]);
  assert.equal(seen.length, 2);
});

test('a held poll names the known revision and asks for 25 s', async (t) => {
  notePauses(t);
  const { turn, seen } = await turnAgainst(t, [json(200, await record({ revision: 'r 1' })), json(200, await ended())]);
  await turn.done();
  assert.deepEqual(
    seen.map(({ path, headers }) => [path, headers['prefer']]),
    [
      ['/v1/agent-sessions/ags_1', undefined],
      ['/v1/agent-sessions/ags_1?revision=r%201', 'wait=25'],
    ],
  );
});

test('a follower survives a restart of the service, also in mid page', async (t) => {
  notePauses(t);
  const running = json(200, await record({ revision: '2' }));
  const reply = { seq: 1, turnId: 'trn_1', at: '2026-11-21T09:30:00.000Z', text: 'one', truncated: false };
  const page = { messages: [reply], nextCursor: 'c1', hasMore: false };
  const { turn } = await turnAgainst(t, [
    ...Array.from({ length: 6 }, () => broken),
    running,
    ...Array.from({ length: 4 }, () => refusal(503, 'sandbox_unreachable')),
    running,
    refusal(409, 'sandbox_state_conflict'),
    json(200, await ended()),
    json(200, page),
  ]);
  const texts: string[] = [];
  const notes: unknown[] = [];
  const options = {
    onSession: ({ revision }: { revision: string }) => void notes.push(revision),
    onRetry: ({ code }: BerthError) => void notes.push(code),
  };
  for await (const { text } of turn.replies(options)) texts.push(text);
  assert.deepEqual(texts, ['one']);
  assert.equal(turn.cursor, 'c1');
  assert.deepEqual(notes, ['connection_failed', 'sandbox_unreachable', 'sandbox_state_conflict', 'end']);
});

test('a follower ends with a failure that does not pass, and with an outage of two minutes', async (t) => {
  notePauses(t);
  const { turn } = await turnAgainst(t, [refusal(403, 'permission_denied')]);
  assert.equal((await failureOf(turn.done())).code, 'permission_denied');

  const gone = await turnAgainst(t, [broken]);
  let nowMs = Date.now();
  t.mock.method(Date, 'now', () => (nowMs += 5_000));
  assert.equal((await failureOf(gone.turn.done())).code, 'connection_failed');
  assert.ok(gone.seen.length > 4, `${gone.seen.length} requests`);
});

test('replies of an ended turn in a sandbox that sleeps are an error, not an empty list', async (t) => {
  const { turn } = await turnAgainst(t, [json(200, await ended()), refusal(409, 'sandbox_state_conflict')]);
  assert.equal((await failureOf(turn.replies().next())).code, 'sandbox_state_conflict');
});

test('polls that are not held get rarer: every second with news, every five without', async (t) => {
  const pauses = notePauses(t);
  const news = await Promise.all(Array.from({ length: 20 }, (_, index) => record({ revision: `${index + 2}` })));
  const { turn } = await turnAgainst(t, [...news.map((one) => json(200, one)), json(200, await ended())]);
  await turn.done();
  const waits = pauses.filter((ms) => ms > 0);
  assert.equal(waits[0], 100);
  assert.equal(Math.max(...waits), 1_000);

  pauses.length = 0;
  const same = json(200, await record({ revision: 'same' }));
  const asleep = await turnAgainst(t, [...Array.from({ length: 20 }, () => same), json(200, await ended())]);
  await asleep.turn.done();
  assert.equal(Math.max(...pauses), 5_000);
});

test('an approval that someone else answered first is no failure of the follower', async (t) => {
  notePauses(t);
  const pendingInput = { requestId: 1, turnId: 'trn_1', kind: 'command', decisions: ['accept'], askedAt: 'x' };
  const { turn, seen } = await turnAgainst(t, [
    json(200, await record({ pendingInput, revision: '2' })),
    refusal(409, 'agent_prompt_not_pending'),
    json(200, await ended()),
  ]);
  assert.equal((await turn.done({ onApproval: () => 'accept' })).state, 'completed');
  assert.deepEqual(seen[1]?.body, JSON.stringify({ requestId: 1, decision: 'accept' }));
});

test('a turn that the session does not list is an error', async (t) => {
  const { turn } = await turnAgainst(t, [json(200, await record({ recentTurns: [] }))]);
  assert.match((await failureOf(turn.done())).message, /trn_1 is not among the last 0 turns/);
});
