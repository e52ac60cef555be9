// Rules of conversations, without a browser: messages on their way, transcripts, approvals.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { BerthError, type api } from '@berth/sdk';
import {
  cardKeyOf,
  compactLines,
  lacksTurns,
  shownTurns,
  UNREAD,
  withReplies,
  withTurns,
} from '../src/rules/agents/conversation.ts';
import {
  EMPTY,
  nextOutbox,
  resendAfterMs,
  restoredOutbox,
  type Outbox,
  type OutboxEvent,
} from '../src/rules/agents/outbox.ts';
import { visibleLines } from '../src/rules/visible-text.ts';

const after = (state: Outbox, ...events: OutboxEvent[]): Outbox => events.reduce(nextOutbox, state);
const failed = (code: string, status?: number): OutboxEvent => ({
  type: 'failed',
  error: new BerthError('why', { code, status }),
});
const LOST = failed('connection_failed');
const edit = (text: string): OutboxEvent => ({ type: 'edit', text });
const send = (key: string, signIn = 'sign-in 1'): OutboxEvent => ({ type: 'send', key, signIn });
const RESEND: OutboxEvent = { type: 'resend', signIn: 'sign-in 1' };
const SENDING = after(EMPTY, edit('hello'), send('key 1'));

test('a sent message leaves when its turn is known', () => {
  assert.deepEqual([SENDING.name, SENDING.key, SENDING.text], ['sending', 'key 1', 'hello']);
  for (const state of ['running', 'waiting', 'completed', 'canceled', 'state_of_the_future'])
    assert.deepEqual(after(SENDING, { type: 'sent', state }), EMPTY);
});

for (const [code, status] of [
  ['connection_failed', undefined],
  ['timeout', undefined],
  ['invalid_answer', 403],
  ['message_delivery_uncertain', 503],
  ['shutting_down', 503],
  ['internal', 500],
] as const) {
  test(`a message whose response is ${code} goes again with the same key and text, three times`, () => {
    let state = after(SENDING, failed(code, status));
    const pauses = [];
    while (state.name === 'checking') {
      pauses.push(resendAfterMs(state));
      assert.deepEqual(after(state, edit('changed'), send('key 2')), state);
      state = after(state, RESEND);
      assert.deepEqual([state.name, state.key, state.text], ['sending', 'key 1', 'hello']);
      state = after(state, failed(code, status));
    }
    assert.deepEqual(pauses, [1_000, 2_000, 4_000]);
    assert.deepEqual([state.name, state.key, state.note?.code], ['draft', 'key 1', 'unsure']);
    // The person sends it again: still the same message.
    assert.deepEqual(after(state, send('key 2')).key, 'key 1');
    // Another text is another message, which does not end the doubt.
    const other = after(state, edit('hello!'));
    assert.deepEqual([other.key, other.note?.code, after(other, send('key 2')).key], [null, 'unsure', 'key 2']);
  });
}

test('a key of another sign-in is never sent: the person decides', () => {
  const again = after(SENDING, LOST, { type: 'resend', signIn: 'sign-in 2' });
  assert.deepEqual(again, { ...EMPTY, text: 'hello', note: { code: 'signed_in_again', message: '' } });
  const unsure = after(SENDING, LOST, RESEND, LOST, RESEND, LOST, RESEND, LOST);
  assert.deepEqual(after(unsure, send('key 2', 'sign-in 2')), again);
  assert.deepEqual(after(again, send('key 2', 'sign-in 2')).key, 'key 2');
});

test('a refusal keeps the text and its key', () => {
  for (const [code, status] of [
    ['agent_turn_active', 409],
    ['session_retry_upgrade_required', 409],
    ['agent_bridge_stopped', 409],
    ['agent_bridge_not_ready', 503],
    ['rate_limited', 429],
    ['permission_denied', 403],
    ['unauthenticated', 401],
  ] as const) {
    const state = after(SENDING, failed(code, status));
    assert.deepEqual([state.name, state.text, state.key, state.note?.code], ['draft', 'hello', 'key 1', code]);
  }
  assert.equal(after(SENDING, failed('request_key_conflict', 409)).key, null);
});

test('a message that interrupts goes out under its key after the end of the turn, or stays', () => {
  const busy = after(SENDING, failed('agent_turn_active', 409), { type: 'interrupt' });
  assert.deepEqual([busy.name, after(busy, edit('other')).text], ['interrupting', 'hello']);
  assert.deepEqual([after(busy, send('key 2')).name, after(busy, send('key 2')).key], ['sending', 'key 1']);
  assert.equal(after(busy, { type: 'stop' }).name, 'draft');
  // The interrupt has a failure of its own: no message is on its way.
  assert.equal(after(busy, LOST).name, 'draft');
});

test('a message whose turn failed before it ran returns to the draft, and is a new one from then on', () => {
  const state = after(SENDING, LOST, RESEND, { type: 'sent', state: 'failed' });
  assert.deepEqual([state.name, state.text, state.key, state.note?.code], ['draft', 'hello', null, 'turn_failed']);
});

test('a reload checks a message on its way, and sends nothing else', () => {
  const reloaded = (state: Outbox): Outbox => restoredOutbox(JSON.stringify(state));
  for (const state of [SENDING, after(SENDING, LOST)]) {
    const { name, key, text } = reloaded(state);
    assert.deepEqual([name, key, text], ['checking', 'key 1', 'hello']);
  }
  for (const state of [
    after(EMPTY, edit('hello')),
    after(EMPTY, edit('hello'), { type: 'interrupt' }),
    after(SENDING, failed('agent_turn_active', 409)),
    after(SENDING, failed('agent_turn_active', 409), { type: 'interrupt' }),
  ]) {
    const { name, text, key } = reloaded(state);
    assert.deepEqual([name, text, key], ['draft', 'hello', state.key]);
  }
  for (const stored of [null, '', '{', 'null', '[]']) assert.deepEqual(restoredOutbox(stored), EMPTY);
});

test('an empty text is not sent', () => {
  assert.equal(after(EMPTY, edit(' \n'), send('key 1')).name, 'draft');
});

const at = '2026-11-26T08:00:00.000Z';
const turnOf = (number: number, text = `prompt ${number}`): api.AgentTurnWithMessage => ({
  ...{ turnId: `turn ${number}`, number, text, author: null },
  ...{ state: 'running', reason: null, startedAt: at, endedAt: null },
});
const replyOf = (seq: number, turn: number, text = `reply ${seq}`): api.AgentOutputMessage => ({
  ...{ seq, turnId: `turn ${turn}`, at, text, truncated: false },
});
const turns = (...entries: api.AgentTurnWithMessage[]) => ({ turns: entries, nextCursor: 't', hasMore: false });
const replies = (...messages: api.AgentOutputMessage[]) => ({ messages, nextCursor: 'r', hasMore: false });

test('replies stand below their turns, and the last states are those of the session', () => {
  let transcript = withTurns(UNREAD, turns(turnOf(1), turnOf(2)));
  transcript = withReplies(transcript, replies(replyOf(1, 1), replyOf(4, 2), replyOf(9, 7)));
  // A page that was read twice.
  transcript = withReplies(withTurns(transcript, turns(turnOf(2))), replies(replyOf(4, 2), replyOf(10, 2)));
  const recent = [{ turnId: 'turn 2', state: 'completed', reason: null, startedAt: at, endedAt: at }] as const;
  assert.deepEqual(
    shownTurns(transcript, recent).map(({ turn, state, replies: found }) => [
      ...[turn?.text, state?.state],
      found.map(({ seq }) => seq),
    ]),
    [
      ['prompt 1', 'running', [1]],
      ['prompt 2', 'completed', [4, 10]],
      [undefined, undefined, [9]],
    ],
  );
  const session = (turnId: string) => ({ recentTurns: [{ ...turnOf(1), turnId }] }) as unknown as api.AgentSession;
  assert.deepEqual(
    [lacksTurns(transcript, session('turn 2')), lacksTurns(transcript, session('turn 3'))],
    [false, true],
  );
});

test('a flood of replies drops the oldest', () => {
  const many = Array.from({ length: 5_001 }, (_, index) => replyOf(index + 1, 1));
  const kept = withReplies(UNREAD, replies(...many));
  assert.deepEqual([kept.replies.length, kept.replies[0]?.seq, kept.trimmed], [5_000, 2, true]);
  const long = 'x'.repeat(131_072);
  const large = Array.from({ length: 200 }, (_, index) => replyOf(index + 1, 1, long));
  const bounded = withReplies(UNREAD, replies(...large));
  assert.deepEqual([bounded.replies.length, bounded.replies.at(-1)?.seq], [152, 200]);
});

test('an approval changes with everything that a person decides about', () => {
  const pending = {
    ...{ requestId: 1, turnId: 'turn 1', kind: 'command', askedAt: at, decisions: ['accept'] },
    ...{ title: 'Run', detail: 'ls', truncated: false, workingDirectory: null },
  };
  const keys = [pending, { ...pending, requestId: '1' }, { ...pending, detail: 'rm' }, { ...pending, title: null }];
  assert.equal(new Set(keys.map(cardKeyOf)).size, 4);
});

test('lines of a text stay, and what hides or reorders it is visible', () => {
  assert.equal(visibleLines('a\r\n\tb\u202Ec\u0007'), 'a\n\tb⟨U+202E⟩c⟨U+0007⟩');
  assert.equal(compactLines(`ls${'\n \n'.repeat(60)}rm -rf /`), 'ls\n⟨119 empty lines⟩\nrm -rf /');
  assert.equal(compactLines('a\n\n\nb'), 'a\n\n\nb');
});
