// Runs cells of the outcome table: brings a turn to its moment, injects the fault, and compares.
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { until } from '../../os/test/until.ts';
import type { Answer } from '../world/client.ts';
import type { Conversation } from './conversation.ts';
import { OUTCOMES, type Fault, type Moment } from './outcomes.ts';

/** Life of the command of a tool that never ends by itself, in seconds; found by it. */
const TOOL_SECONDS = 86_417;
const ENDLESS_TOOL = `run touch /tmp/tool-started; sleep ${TOOL_SECONDS}`;

/** Turns that wait for the fault or end soon after it. */
const TURN: { readonly [moment in Moment]: string } = {
  sending: 'say sent',
  streaming: 'stream 30 100',
  'tool running': 'run touch /tmp/tool-started; while [ ! -e /tmp/tool-released ]; do sleep 0.1; done',
  waiting: 'ask to go on',
  interrupting: ENDLESS_TOOL,
};
/** Turns that only the fault can end, however late it comes on a loaded machine. */
const ENDLESS: { readonly [moment in Moment]?: string } = {
  streaming: 'stream 100000 100',
  'tool running': ENDLESS_TOOL,
};

/** Injects a fault; resolves when everything that was ended runs again. */
type Inject = (fault: Fault, conversation: Conversation) => Promise<void>;

export async function runCell(conversation: Conversation, fault: Fault, moment: Moment, inject: Inject): Promise<void> {
  const expected = OUTCOMES[fault][moment];
  const key = `cell-${randomBytes(8).toString('hex')}`;
  const text = (expected.states.includes('completed') ? undefined : ENDLESS[moment]) ?? TURN[moment];
  await conversation.run('rm -f /tmp/tool-started /tmp/tool-released');
  let turnId: string;
  if (moment === 'sending') {
    const sent = conversation.call('POST', '/messages', { text, requestKey: key });
    await inject(fault, conversation);
    const first = turnOf(await sent);
    turnId = await conversation.deliver(text, key);
    if (first !== undefined) assert.equal(turnId, first, 'a resend returned another turn');
  } else {
    turnId = await conversation.deliver(text, key);
    await reach(conversation, turnId, moment);
    const interrupted = moment === 'interrupting' ? conversation.call('POST', '/interrupt') : undefined;
    await inject(fault, conversation);
    await interrupted;
    await conversation.run('touch /tmp/tool-released');
  }

  await finish(conversation, turnId, moment);
  const ended = await conversation.ended(turnId);
  assert.ok(expected.states.includes(ended.state), `the turn is ${JSON.stringify(ended)}`);
  if (ended.state === 'failed') assert.ok(expected.reasons.includes(ended.reason ?? ''), JSON.stringify(ended));

  // A message that runs once more would be seen in the effects and replies.
  assert.equal(await conversation.deliver(text, key), turnId);
  await conversation.wake();
  if ((await conversation.session()).bridgeState !== 'ready') {
    assert.ok(expected.recovers, 'the bridge stopped');
    await conversation.recover();
  }
  assert.equal((await conversation.run(`pgrep -fc "sleep ${TOOL_SECONDS}$" || true`)).trim(), '0', 'a command remains');
  const next = await conversation.deliver('say next', `${key}-next`);
  assert.equal((await conversation.ended(next)).state, 'completed');

  const effects = await conversation.effects();
  const count = effects.filter((id) => id === turnId).length;
  assert.ok(count <= 1, `the turn ran ${count} times`);
  // A power cut may lose the unflushed line.
  if (ended.state === 'completed' && fault !== 'power cut') assert.equal(count, 1);
  assert.equal(effects.filter((id) => id === next).length, 1);
  await conversation.readOn();
  await conversation.assertReadAgain();
}

function turnOf(answer: Answer | null): string | undefined {
  const body = answer?.body as { turnId?: string; error?: { turnId?: string } } | undefined;
  return body?.turnId ?? body?.error?.turnId;
}

async function reach(conversation: Conversation, turnId: string, moment: Moment): Promise<void> {
  if (moment === 'streaming') {
    await until('a reply is read', async () => {
      const replies = await conversation.readOn();
      return replies.some((reply) => reply.turnId === turnId) ? true : null;
    });
  } else if (moment === 'waiting') {
    await until('the agent waits', async () => ((await conversation.session()).needsYou ? true : null));
  } else {
    await until('the tool runs', async () => {
      const found = await conversation.run('ls /tmp/tool-started 2>/dev/null || true');
      return found === '' ? null : true;
    });
  }
}

/** Answers an approval that is still pending; repeats an interrupt that may not have arrived. */
async function finish(conversation: Conversation, turnId: string, moment: Moment): Promise<void> {
  if (moment !== 'waiting' && moment !== 'interrupting') return;
  await until('the turn takes the call', async () => {
    const session = await conversation.session();
    if (session.turnId !== turnId || !['running', 'waiting'].includes(session.turnState ?? '')) return true;
    if (session.bridgeState !== 'ready') return null;
    if (moment === 'interrupting') {
      await conversation.call('POST', '/interrupt');
    } else if (session.pendingInput !== null) {
      const { requestId } = session.pendingInput;
      await conversation.call('POST', '/answer', { requestId, decision: 'accept' });
    }
    return null;
  });
}
