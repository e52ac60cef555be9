// The agent tools of the MCP endpoint: a conversation with an agent, and its errors.
import assert from 'node:assert/strict';
import { after, before, beforeEach, test } from 'node:test';
import { AGENT_TEXT_CHARACTERS } from '@berth/contract/route/limits.ts';
import type { GuestSession } from '../world/guests/agent-guests.ts';
import { startApi, type TestApi } from '../world/api.ts';
import { ExecRefusal } from '../world/guests/exec-refusal.ts';
import { insertMembership } from '../../src/store/people/identity.ts';
import { makeAgentTokenRow } from '../world/people-rows.ts';
import { untilTrue } from '../../../os/test/until.ts';
import { callTool, postMcp, type PostOptions } from './post.ts';

const KEY = 'request-key.1';

let api: TestApi;
before(async () => {
  api = await startApi({ durable: false });
});
after(() => api.close());
beforeEach(() => {
  api.agents.before = () => undefined;
  api.agents.after = () => undefined;
});

/** Calls a tool; returns its result, whatever it is. */
async function call(name: string, given: object, options: PostOptions = {}) {
  const { status, body } = await postMcp(api, callTool(name, given), options);
  assert.equal(status, 200, JSON.stringify(body));
  assert.notEqual(body.result, undefined, JSON.stringify(body));
  return body.result;
}

/** Calls a tool that must succeed; returns the response body of its route. */
async function use(name: string, given: object, options: PostOptions = {}) {
  const { isError, structuredContent, content } = await call(name, given, options);
  assert.equal(isError, undefined, JSON.stringify(content));
  assert.deepEqual(JSON.parse(content[0].text), structuredContent);
  return structuredContent;
}

/** Calls a tool that must fail with the code; returns the error. */
async function refuse(code: string, name: string, given: object, options: PostOptions = {}) {
  const { isError, structuredContent, content, _meta } = await call(name, given, options);
  assert.deepEqual([isError, _meta?.error.code, structuredContent], [true, code, undefined], JSON.stringify(content));
  assert.equal(content[0].text, `${code}: ${_meta.error.message}`);
  return _meta.error;
}

async function create(): Promise<{ session_id: string; sandboxId: string; guest: GuestSession }> {
  const { id: sandboxId } = await api.makeSandbox('ready');
  const { id, bridgeState } = await use('create_agent_session', { sandbox_id: sandboxId });
  assert.equal(bridgeState, 'ready');
  return { session_id: id, sandboxId, guest: api.agents.session(sandboxId, id) };
}

test('a conversation: create, send, replay, wait, read, interrupt, recover', async () => {
  const { session_id, sandboxId, guest } = await create();
  const listed = await use('list_agent_sessions', { sandbox_id: sandboxId });
  assert.deepEqual([listed.sessions.length, listed.sessions[0].id, listed.hasMore], [1, session_id, false]);

  const message = { session_id, text: 'Say hello', request_key: KEY };
  const { turnId, state, replayed } = await use('send_agent_message', message);
  assert.deepEqual([state, replayed], ['running', undefined]);
  assert.deepEqual(await use('send_agent_message', message), { turnId, state: 'running', replayed: true });
  const conflict = await refuse('request_key_conflict', 'send_agent_message', { ...message, text: 'other' });
  assert.match(conflict.message, new RegExp(turnId));
  await refuse('agent_turn_active', 'send_agent_message', { session_id, text: 'another' });
  assert.deepEqual(
    guest.messages.map(({ text }) => text),
    ['Say hello'],
  );

  guest.reply('hello');
  guest.reply('bye');
  const first = await use('get_agent_output', { session_id, limit: 1 });
  assert.deepEqual([first.messages[0].text, first.messages[0].turnId, first.hasMore], ['hello', turnId, true]);
  const second = await use('get_agent_output', { session_id, after: first.nextCursor });
  assert.deepEqual([second.messages[0].text, second.hasMore], ['bye', false]);

  const interrupted = await use('interrupt_agent_turn', { session_id });
  assert.deepEqual(interrupted, { turnId, state: 'interrupting' });
  guest.end('canceled');
  assert.equal((await use('get_agent_session', { session_id })).turnState, 'canceled');
  await refuse('agent_turn_not_active', 'interrupt_agent_turn', { session_id });

  guest.change({ bridge: 'stopped', bridgeReason: 'agent_ended' });
  await refuse('agent_bridge_stopped', 'send_agent_message', { session_id, text: 'again' });
  const { bridgeState, communication } = await use('get_agent_session', { session_id });
  assert.deepEqual([bridgeState, communication.capabilities], ['stopped', ['output', 'recovery']]);
  assert.equal((await use('recover_agent_session', { session_id })).bridgeState, 'ready');
  await use('send_agent_message', { session_id, text: 'again' });
});

test('an approval is answered with a request_id of the same type only', async () => {
  const { session_id, guest } = await create();
  const { turnId } = await use('send_agent_message', { session_id, text: 'run it' });
  const request_id = guest.ask();
  const { needsYou, waitingOn, pendingInput } = await use('get_agent_session', { session_id, detail: 'full' });
  assert.deepEqual([needsYou, waitingOn, pendingInput.requestId], [true, 'approval', request_id]);
  assert.equal(pendingInput.workingDirectory, '/code');
  const { sessions } = await use('list_agent_sessions', { needs_you: 'true' });
  assert.ok(sessions.some(({ id }: { id: string }) => id === session_id));

  api.agents.calls.length = 0;
  const text = String(request_id);
  await refuse('agent_prompt_not_pending', 'answer_agent_prompt', {
    session_id,
    request_id: text,
    decision: 'accept',
  });
  await refuse('agent_prompt_not_pending', 'answer_agent_prompt', {
    session_id,
    request_id: request_id + 1,
    decision: 'accept',
  });
  await refuse('invalid_request', 'answer_agent_prompt', { session_id, decision: 'accept' });
  const answer = { session_id, request_id, decision: 'decline' };
  const answered = { requestId: request_id, decision: 'decline', turnId, turnState: 'running' };
  assert.deepEqual(await use('answer_agent_prompt', answer), { ...answered, repeated: false });
  assert.deepEqual(await use('answer_agent_prompt', answer), { ...answered, repeated: true });
  await refuse('agent_prompt_not_pending', 'answer_agent_prompt', { ...answer, decision: 'accept' });
  assert.deepEqual(
    api.agents.calls.filter(({ verb }) => verb === 'answer').map(({ body }) => body['requestId']),
    [text, request_id + 1, request_id, request_id, request_id],
  );
});

test('an uncertain delivery names its turn, and a resend with the same request_key runs it once', async () => {
  const { session_id, guest } = await create();
  api.agents.after = ({ verb }) => {
    if (verb !== 'messages') return;
    api.agents.after = () => undefined;
    throw new ExecRefusal('guest_unreachable', 'the guest did not respond');
  };
  const message = { session_id, text: 'once', request_key: KEY };
  const { turnId, message: words } = await refuse('message_delivery_uncertain', 'send_agent_message', message);
  assert.match(turnId, /^trn_/);
  assert.ok(words.includes(turnId), 'the model sees the turn id');
  assert.deepEqual(await use('send_agent_message', message), { turnId, state: 'running', replayed: true });
  assert.equal(guest.messages.length, 1);
});

test('wait_seconds holds a response until there is something new', async () => {
  const { session_id, guest } = await create();
  await use('send_agent_message', { session_id, text: 'hello' });
  const isHeld = (verb: string) => (): boolean =>
    api.agents.calls.some((made) => made.sessionId === session_id && made.verb === verb && made.query.has('waitMs'));

  const output = use('get_agent_output', { session_id, wait_seconds: 25 });
  await untilTrue('the read of output is held', isHeld('output'));
  guest.reply('at last');
  assert.equal((await output).messages[0].text, 'at last');

  const { revision } = await use('get_agent_session', { session_id });
  const state = use('get_agent_session', { session_id, revision, wait_seconds: 25 });
  await untilTrue('the read of the session is held', isHeld(''));
  guest.end();
  assert.equal((await state).turnState, 'completed');

  for (const wait_seconds of [0, 26, 1.5, '5']) {
    const { message } = await refuse('invalid_request', 'get_agent_output', { session_id, wait_seconds });
    assert.match(message, /^wait_seconds must be/);
  }
});

test('held calls take the places of the org that held responses have', async () => {
  const { session_id, sandboxId } = await create();
  const releases: (() => void)[] = [];
  for (;;) {
    const release = api.context.holds.take({ orgId: api.orgId, sandboxId, callerId: 'caller' });
    if (release === null) break;
    releases.push(release);
  }
  api.agents.calls.length = 0;
  try {
    assert.deepEqual((await use('get_agent_output', { session_id, wait_seconds: 25 })).messages, []);
    await use('get_agent_session', { session_id, wait_seconds: 25 });
    assert.deepEqual(
      api.agents.calls.map(({ query }) => query.has('waitMs')),
      [false, false],
      'without a place, a response is not held',
    );
  } finally {
    for (const release of releases) release();
  }
});

test('the access check of the route decides about the session', async () => {
  const { session_id } = await create();
  const other = await api.makeOrg();
  await refuse('org_access_denied', 'get_agent_session', { session_id }, { token: other.token });
  await refuse('agent_session_not_found', 'get_agent_session', { session_id: `ags_${'a'.repeat(24)}` });
  const foreign = { org_id: api.orgId };
  await refuse('org_access_denied', 'list_agent_sessions', foreign, { token: other.token });
  // A viewer who may send in another org.
  const { token, userId } = await api.makeSession({ role: 'viewer' });
  await insertMembership(api.db, { orgId: other.orgId, userId, role: 'member' });
  await use('get_agent_session', { session_id }, { token });
  await refuse('permission_denied', 'send_agent_message', { session_id, text: 'x' }, { token });
});

test('a personal agent token drives sessions as far as its grants go', async () => {
  const { session_id, guest } = await create();
  const { token } = await makeAgentTokenRow(api.db, { userId: api.userId });
  const reader = (await makeAgentTokenRow(api.db, { userId: api.userId, access: 'read_only' })).token;
  await use('send_agent_message', { session_id, text: 'run it' }, { token });
  const request_id = guest.ask();
  assert.equal((await use('get_agent_session', { session_id }, { token: reader })).needsYou, true);
  const hidden: [string, string, object][] = [
    [reader, 'send_agent_message', { text: 'x' }],
    [token, 'answer_agent_prompt', { request_id, decision: 'accept' }],
  ];
  for (const [asking, name, given] of hidden) {
    const { body } = await postMcp(api, callTool(name, { session_id, ...given }), { token: asking });
    assert.equal(body.error.code, -32_602);
  }
  assert.equal(guest.answers.size, 0);
});

test('the longest message passes, each character escaped, and a longer one is refused', async () => {
  const { session_id, guest } = await create();
  const escaped = (length: number): string =>
    JSON.stringify(callTool('send_agent_message', { session_id, text: 'TEXT' })).replace(
      'TEXT',
      '\\u00e4'.repeat(length),
    );
  const sent = await postMcp(api, escaped(AGENT_TEXT_CHARACTERS));
  assert.equal(sent.body.result.structuredContent.state, 'running');
  assert.equal(guest.messages[0]?.text, '\u00e4'.repeat(AGENT_TEXT_CHARACTERS));
  const { body } = await postMcp(api, escaped(AGENT_TEXT_CHARACTERS + 1));
  assert.equal(body.result._meta.error.code, 'invalid_request');
  assert.match(body.result.content[0].text, /: text must be/);
});

test('no row, event or log has the text of a message or reply', async () => {
  const { session_id, guest } = await create();
  const text = api.secret('unguessable words of a message', 'message');
  const reply = api.secret('unguessable words of a reply', 'reply');
  await use('send_agent_message', { session_id, text });
  guest.reply(reply);
  await use('get_agent_output', { session_id });
  await api.scanSecrets();
});
