// The checks that every agent passes, through the public API. Each has a session of its own.
import assert from 'node:assert/strict';
import { until } from '../../../os/test/until.ts';
import { killInGuest, stateOf } from '../faults.ts';
import { assertRefused, type SessionCheck } from './session-check.ts';

const KEY = 'request-key.1';

export const CHECKS: { readonly [title: string]: (check: SessionCheck) => Promise<void> } = {
  'a new session is ready, and has run nothing': async (check) => {
    const { bridgeState, turnState, needsYou, communication, agentLabel, surface } = await check.talk.session();
    assert.deepEqual([bridgeState, turnState, needsYou, surface], ['ready', null, false, 'managed']);
    assert.equal(agentLabel, check.agent.label);
    assert.deepEqual(communication, {
      status: 'available',
      capabilities: ['messages', 'output', 'approvals', 'interruption', 'recovery'],
    });
    assert.deepEqual(await check.texts(), []);
  },

  'a message is a turn with its replies, executed once': async (check) => {
    const turnId = await check.run('turn', [check.agent.words.say('hello')]);
    const { status, body } = await check.call('GET', '/output');
    const { messages, hasMore } = body as { messages: { at: string; seq: number }[]; hasMore: boolean };
    assert.deepEqual([status, hasMore, messages.length], [200, false, 1], JSON.stringify(body));
    const [message] = messages;
    const { at, seq } = message as { at: string; seq: number };
    assert.deepEqual(message, { seq, turnId, at, text: 'hello', truncated: false });
    assert.ok(Date.parse(at) > 0);
    await check.assertRuns(turnId, 'turn');
  },

  'a resend of a key returns its turn and runs nothing': async (check) => {
    const script = [check.agent.words.say('once')];
    const turnId = await check.turn('replay', script, KEY);
    await check.ends(turnId, 'completed');
    const { status, body } = await check.send('replay', script, KEY);
    assert.deepEqual([status, body], [202, { turnId, state: 'completed', replayed: true }]);
    await check.assertRuns(turnId, 'replay');
    assert.deepEqual(await check.texts(), ['once']);
  },

  'a key with another text is a conflict': async (check) => {
    const turnId = await check.turn('first', [check.agent.words.say('first')], KEY);
    await check.ends(turnId, 'completed');
    const refused = await check.send('second', [check.agent.words.say('second')], KEY);
    assert.match(assertRefused(refused, 409, 'request_key_conflict').message, new RegExp(turnId));
    assert.deepEqual(await check.texts(), ['first']);
  },

  'a key of another caller is another turn': async (check) => {
    const script = [check.agent.words.say('each')];
    const first = await check.turn('one', script, KEY);
    await check.ends(first, 'completed');
    const { status, body } = await check.send('one', script, KEY, await check.world.otherKey());
    const { turnId: second, ...rest } = body as { turnId: string };
    assert.deepEqual([status, rest], [202, { state: 'running' }]);
    assert.notEqual(second, first);
    await check.ends(second, 'completed');
    assert.deepEqual(await check.texts(), ['each', 'each']);
  },

  'a message during a turn is refused and never queued': async (check) => {
    const { words } = check.agent;
    const turnId = await check.turn('busy', [words.hang]);
    await check.works(turnId, 'busy');
    for (const key of [undefined, KEY])
      assertRefused(await check.send('queued', [words.say('queued')], key), 409, 'agent_turn_active');
    await check.interrupt(turnId);
    await check.run('next', [words.say('next')]);
    assert.deepEqual(await check.texts(), ['next']);
  },

  'accept carries out the action': async (check) => {
    const turnId = await check.turn('accept', [check.agent.words.tool(`touch ${check.file('a')}`)]);
    const requestId = await check.asked();
    assert.equal(await check.exists(check.file('a')), false);
    const { status, body } = await check.answer(requestId, 'accept');
    const { turnState, ...rest } = body as { turnState: string };
    assert.deepEqual([status, rest], [200, { requestId, decision: 'accept', repeated: false, turnId }]);
    assert.ok(['running', 'completed'].includes(turnState), turnState);
    await check.ends(turnId, 'completed');
    assert.ok(await check.exists(check.file('a')));
    await check.assertRuns(turnId, 'accept', 1);
  },

  'decline skips the action, and the turn goes on': async (check) => {
    const { tool, say } = check.agent.words;
    const turnId = await check.turn('decline', [tool(`touch ${check.file('a')}`), say('after')]);
    assert.equal((await check.answer(await check.asked(), 'decline')).status, 200);
    await check.ends(turnId, 'completed');
    assert.equal((await check.texts()).at(-1), 'after');
    assert.equal(await check.exists(check.file('a')), false);
    await check.assertRuns(turnId, 'decline', 1);
  },

  'cancel skips the action and ends the turn': async (check) => {
    const { tool, say } = check.agent.words;
    const turnId = await check.turn('cancel', [tool(`touch ${check.file('a')}`), say('not reached')]);
    assert.equal((await check.answer(await check.asked(), 'cancel')).status, 200);
    await check.ends(turnId, 'canceled');
    assert.equal(await check.exists(check.file('a')), false);
    assert.deepEqual(await check.texts(), []);
    await check.assertRuns(turnId, 'cancel');
    await check.run('next', [say('next')]);
  },

  'an answer to an earlier approval is stale, and the first one wins': async (check) => {
    const { tool } = check.agent.words;
    const script = [tool(`touch ${check.file('a')}`), tool(`touch ${check.file('b')}`)];
    const turnId = await check.turn('stale', script);
    const first = await check.asked();
    assertRefused(await check.answer(first + 1, 'accept'), 409, 'agent_prompt_not_pending');
    assert.equal((await check.answer(first, 'accept')).status, 200);
    await check.talk.until('another approval', ({ pendingInput }) => (pendingInput?.requestId ?? first) !== first);
    const second = await check.asked();
    const repeated = await check.answer(first, 'accept');
    assert.deepEqual([repeated.status, (repeated.body as { repeated: boolean }).repeated], [200, true]);
    assertRefused(await check.answer(first, 'decline'), 409, 'agent_prompt_not_pending');
    assert.equal(await check.asked(), second);
    assert.equal((await check.answer(second, 'decline')).status, 200);
    await check.ends(turnId, 'completed');
    assertRefused(await check.answer(second, 'accept'), 409, 'agent_prompt_not_pending');
    assert.deepEqual([await check.exists(check.file('a')), await check.exists(check.file('b'))], [true, false]);
    await check.assertRuns(turnId, 'stale', 2);
  },

  'an answer with an id of another type is refused': async (check) => {
    const turnId = await check.turn('typed', [check.agent.words.tool(`touch ${check.file('a')}`)]);
    const requestId = await check.asked();
    assertRefused(await check.answer(String(requestId), 'accept'), 409, 'agent_prompt_not_pending');
    for (const wrong of [null, true, [requestId], undefined])
      assertRefused(await check.answer(wrong, 'accept'), 400, 'invalid_request');
    assert.equal(await check.asked(), requestId);
    assert.equal(await check.exists(check.file('a')), false);
    assert.equal((await check.answer(requestId, 'accept')).status, 200);
    await check.ends(turnId, 'completed');
    assert.ok(await check.exists(check.file('a')));
  },

  'an interrupt ends a turn that streams': async (check) => {
    const { stream, say } = check.agent.words;
    const turnId = await check.turn('stream', [stream, say('not reached')]);
    await check.works(turnId, 'stream');
    await check.interrupt(turnId);
    assertRefused(await check.call('POST', '/interrupt'), 409, 'agent_turn_not_active');
    await check.assertRuns(turnId, 'stream');
    await check.run('next', [say('next')]);
    assert.equal((await check.texts()).at(-1), 'next');
  },

  'an interrupt ends a tool and its command': async (check) => {
    const { turnId, isAlive } = await beginCommand(check, 'tool');
    await check.interrupt(turnId);
    assert.equal(await isAlive(), false);
    await check.assertRuns(turnId, 'tool');
    await check.run('next', [check.agent.words.say('next')]);
    assert.equal((await check.texts()).at(-1), 'next');
  },

  'an interrupt withdraws an approval': async (check) => {
    const { tool, say } = check.agent.words;
    const turnId = await check.turn('approval', [tool(`touch ${check.file('a')}`), say('not reached')]);
    const requestId = await check.asked();
    await check.interrupt(turnId);
    const { needsYou, waitingOn, pendingInput } = await check.talk.session();
    assert.deepEqual([needsYou, waitingOn, pendingInput], [false, null, null]);
    assertRefused(await check.answer(requestId, 'accept'), 409, 'agent_prompt_not_pending');
    await check.run('next', [say('next')]);
    assert.equal(await check.exists(check.file('a')), false);
    await check.assertRuns(turnId, 'approval');
  },

  'a crash of the agent fails its turn, ends its command and stops the session': async (check) => {
    const { turnId, script, isAlive } = await beginCommand(check, 'crash');
    await killInGuest(check.talk, 'agent');
    await check.ends(turnId, 'failed', 'agent_ended');
    await check.stopped('agent_ended');
    assert.equal(await isAlive(), false);
    assertRefused(await check.send('next', [check.agent.words.say('next')]), 409, 'agent_bridge_stopped');
    const { status, body } = await check.send('crash', script, KEY);
    assert.deepEqual([status, body], [202, { turnId, state: 'failed', replayed: true }]);
    await check.assertRuns(turnId, 'crash');
  },

  'a crash of the bridge fails its turn and discards its approval': async (check) => {
    const { tool, say } = check.agent.words;
    const turnId = await check.turn('crash', [tool(`touch ${check.file('a')}`)], KEY);
    const requestId = await check.asked();
    await killInGuest(check.talk, 'bridge');
    await check.ends(turnId, 'failed', 'bridge_ended');
    await check.stopped('bridge_ended');
    assert.equal((await check.talk.session()).needsYou, false);
    assertRefused(await check.answer(requestId, 'accept'), 409, 'agent_bridge_stopped');
    assertRefused(await check.call('POST', '/interrupt'), 409, 'agent_bridge_stopped');
    assertRefused(await check.send('next', [say('next')]), 409, 'agent_bridge_stopped');
    // Before its end, the agent may tell its model that the tool was refused.
    await check.assertRuns(turnId, 'crash', [0, 1]);
    assert.equal(await check.exists(check.file('a')), false);
  },

  'recovery keeps history and cursors, and replays nothing': async (check) => {
    const { words } = check.agent;
    await check.run('one', [words.say('first-reply')]);
    const { nextCursor } = (await check.call('GET', '/output')).body as { nextCursor: string };
    await check.run('two', [words.say('second-reply')]);
    const turnId = await check.turn('lost', [words.hang], KEY);
    await check.works(turnId, 'lost');
    await killInGuest(check.talk, 'bridge');
    await check.stopped('bridge_ended');

    const { status, body } = await check.call('POST', '/recover');
    assert.deepEqual([status, (body as { bridgeState: string }).bridgeState], [200, 'ready']);
    const owners = await stateOf(check.talk, 'owner.json');
    assert.equal((await check.call('POST', '/recover')).status, 200);
    assert.equal(await stateOf(check.talk, 'owner.json'), owners, 'a ready session is left alone');
    await check.run('history', [words.history]);
    const [second, history] = await check.texts(nextCursor);
    assert.equal(second, 'second-reply');
    assert.match(history ?? '', check.agent.recalls(4, ['first-reply', 'second-reply']));
    const resent = await check.send('lost', [words.hang], KEY);
    assert.deepEqual([resent.status, resent.body], [202, { turnId, state: 'failed', replayed: true }]);
    await check.assertRuns(turnId, 'lost');
  },

  'recovery is refused while a recorded process is alive': async (check) => {
    const { say } = check.agent.words;
    await check.run('before', [say('before')]);
    const owners = await stateOf(check.talk, 'owner.json');
    await killInGuest(check.talk, 'bridge');
    await check.stopped('bridge_ended');
    const end = await check.recordLiving(owners);
    assertRefused(await check.call('POST', '/recover'), 409, 'agent_process_alive');
    await check.stopped('bridge_ended');
    await end();
    assert.equal((await check.call('POST', '/recover')).status, 200);
    await check.run('next', [say('next')]);
    assert.deepEqual(await check.texts(), ['before', 'next']);
  },

  'a large reply is truncated, and fills a page': async (check) => {
    const { large, say } = check.agent.words;
    const turnId = await check.run('large', [large(300_000)]);
    await check.run('small', [say('small')]);
    const first = (await check.call('GET', '/output?limit=100')).body as Page;
    assert.deepEqual([first.messages.length, first.hasMore], [1, true]);
    assert.deepEqual([first.messages[0]?.text.length, first.messages[0]?.truncated], [131_072, true]);
    const rest = (await check.call('GET', `/output?limit=100&after=${first.nextCursor}`)).body as Page;
    assert.deepEqual([rest.hasMore, rest.messages.map(({ text }) => text)], [false, ['small']]);
    await check.assertRuns(turnId, 'large');
  },

  'a message that arrives after its resend runs once': async (check) => {
    const script = [check.agent.words.say('once')];
    const held = check.world.link.holdMessage();
    const { turnId } = assertRefused(await check.send('late', script, KEY), 503, 'message_delivery_uncertain');
    const late = await held;
    const { status, body } = await check.send('late', script, KEY);
    assert.deepEqual([status, body], [202, { turnId, state: 'running', replayed: true }]);
    await check.ends(String(turnId), 'completed');
    const arrived = await late.deliver();
    assert.deepEqual([arrived.status, (arrived.body as { known: boolean }).known], [200, true]);
    await check.run('next', [check.agent.words.say('next')]);
    assert.deepEqual(await check.texts(), ['once', 'next']);
    await check.assertRuns(String(turnId), 'late');
  },
};

/** Begins a turn whose command runs until it is ended. */
async function beginCommand(check: SessionCheck, name: string) {
  const { tool, say } = check.agent.words;
  const pidFile = check.file('pid');
  const script = [tool(`sh -c 'echo $$ > ${pidFile}; exec sleep 600'`), say('not reached')];
  const turnId = await check.turn(name, script, KEY);
  assert.equal((await check.answer(await check.asked(), 'accept')).status, 200);
  await until('the command runs', async () => ((await check.exists(pidFile)) ? true : null));
  const isAlive = async (): Promise<boolean> =>
    (await check.talk.run(`kill -0 $(cat ${pidFile}) 2>/dev/null && echo alive || true`)) !== '';
  assert.equal(await isAlive(), true);
  return { turnId, script, isAlive };
}

interface Page {
  messages: { text: string; truncated: boolean }[];
  nextCursor: string;
  hasMore: boolean;
}
