// Approvals of an agent session, with the scripted agent.
import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { until } from '../daemon.ts';
import { AgentDaemon, type TestSession } from './agent-daemon.ts';

async function asked(session: TestSession, text = 'ask delete it'): Promise<{ turnId: string; requestId: number }> {
  const { turn } = await session.send(text);
  await session.reaches(turn.turnId, 'waiting');
  const { prompt } = await session.view();
  assert.equal(prompt?.turnId, turn.turnId);
  return { turnId: turn.turnId, requestId: prompt?.requestId ?? 0 };
}

test('the three decisions differ, and request ids are never reused', async (t) => {
  const session = await (await AgentDaemon.start(t)).session();
  const ids: number[] = [];
  for (const [decision, end] of [
    ['accept', 'completed'],
    ['decline', 'completed'],
    ['cancel', 'canceled'],
  ] as const) {
    const { turnId, requestId } = await asked(session);
    ids.push(requestId);
    assert.equal((await session.answer(requestId, decision)).repeated, false);
    await session.reaches(turnId, end);
    assert.equal((await session.view()).prompt, null);
  }
  assert.deepEqual(ids, [1, 2, 3]);
  assert.deepEqual(await session.texts(), ['decision accept', 'decision decline']);
});

test('the first answer wins; the same again succeeds, also after a crash of the bridge', async (t) => {
  const session = await (await AgentDaemon.start(t)).session();
  const { turnId, requestId } = await asked(session);
  await session.answer(requestId, 'accept');
  await session.reaches(turnId, 'completed');
  assert.equal((await session.answer(requestId, 'accept')).repeated, true);
  await assert.rejects(session.answer(requestId, 'decline'), { status: 409, code: 'agent_prompt_not_pending' });
  await session.kill('bridge');
  await session.stopped();
  assert.equal((await session.answer(requestId, 'accept')).repeated, true);
  await assert.rejects(session.answer(requestId, 'decline'), { code: 'agent_prompt_not_pending' });
  await session.recover();
  const { requestId: next } = await asked(session);
  assert.ok(next > requestId);
  await assert.rejects(session.answer(requestId, 'cancel'), { code: 'agent_prompt_not_pending' });
});

test('an answer with a stale, unknown or wrongly typed id changes nothing', async (t) => {
  const session = await (await AgentDaemon.start(t)).session();
  const { turnId, requestId } = await asked(session);
  for (const id of [String(requestId), requestId + 1, requestId - 1, '', -1, 0.5])
    await assert.rejects(session.answer(id, 'accept'), { code: 'agent_prompt_not_pending' }, String(id));

  for (const id of [null, undefined, [requestId], { requestId }, true])
    await assert.rejects(session.answer(id, 'accept'), { status: 400 }, JSON.stringify(id));

  assert.equal((await session.turn(turnId)).turn?.state, 'waiting');
  await session.answer(requestId, 'decline');
  await session.reaches(turnId, 'completed');
});

test('of two approvals at once the older is shown first', async (t) => {
  const session = await (await AgentDaemon.start(t)).session();
  const { turnId, requestId } = await asked(session, 'ask-twice now');
  await assert.rejects(session.answer(requestId + 1, 'accept'), { code: 'agent_prompt_not_pending' });
  await session.answer(requestId, 'accept');
  assert.equal((await session.view()).prompt?.requestId, requestId + 1);
  assert.equal((await session.view()).turn?.state, 'waiting');
  await session.answer(requestId + 1, 'decline');
  await session.reaches(turnId, 'completed');
});

test('an interrupt withdraws the approval', async (t) => {
  const session = await (await AgentDaemon.start(t)).session();
  const { turnId, requestId } = await asked(session);
  await session.interrupt();
  await session.reaches(turnId, 'canceled');
  await assert.rejects(session.answer(requestId, 'accept'), { code: 'agent_prompt_not_pending' });
  assert.deepEqual(await session.texts(), []);
});

test('an approval is shown as bounded plain text, with its full detail on request', async (t) => {
  const session = await (await AgentDaemon.start(t)).session();
  const { requestId } = await asked(session, `ask ${'é'.repeat(100_000)}\u0007\u001b[31m`);
  const { prompt } = await session.get();
  assert.deepEqual([prompt?.title.length, prompt?.detail.length, prompt?.truncated], [200, 4_096, true]);
  assert.equal(prompt?.workingDirectory, session.agents.daemon.codeFolder);
  const full = (await session.get('?detail=full')).prompt;
  assert.ok(full !== null && Buffer.byteLength(full.detail) <= 131_072 && full.detail.length > 60_000);
  await session.answer(requestId, 'cancel');
});

test('an approval keeps control characters, which the API shows by their codes', async (t) => {
  const session = await (await AgentDaemon.start(t)).session();
  const { requestId } = await asked(session, 'ask rm a\u0008\u2028b');
  assert.ok((await session.get()).prompt?.detail.includes('rm a\u0008\u2028b'));
  await session.answer(requestId, 'cancel');
});

test('a session that never asks is made to ask in the middle of its turn', async (t) => {
  const agents = await AgentDaemon.start(t);
  const session = await agents.session({ approvals: 'never' });
  const { turn } = await session.send('ask first\nrun until [ -e go ]; do sleep 0.01; done\nask second');
  await until('the first approval', async () => (await session.texts()).includes('decision accept'));
  for (let repeat = 0; repeat < 2; repeat += 1) await agents.call('POST', `${session.path}/approvals`);
  await writeFile(join(agents.daemon.codeFolder, 'go'), '');
  await session.reaches(turn.turnId, 'waiting');
  await session.answer((await session.view()).prompt?.requestId ?? 0, 'decline');
  await session.reaches(turn.turnId, 'completed');
});

test('a session that never asks accepts by itself', async (t) => {
  const session = await (await AgentDaemon.start(t)).session({ approvals: 'never' });
  assert.equal((await session.run('ask delete it')).state, 'completed');
  assert.deepEqual(await session.texts(), ['decision accept']);
});
