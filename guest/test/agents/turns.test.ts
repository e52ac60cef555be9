// Turns of an agent session, with the scripted agent.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { AGENT_TEXT_UNITS } from '@berth/protocol/agent-errors.ts';
import { until } from '../daemon.ts';
import { AgentDaemon, newTurn } from './agent-daemon.ts';

test('a session is ready, runs a turn and returns its replies', async (t) => {
  const session = await (await AgentDaemon.start(t)).session();
  const ready = await session.view();
  assert.deepEqual(
    [ready.bridge, ready.bridgeVersion, ready.turn, ready.lastSeq, ready.agent],
    ['ready', 7, null, 0, 'agent_one'],
  );
  const { turn, known } = await session.send('say hello\nsay world');
  assert.deepEqual([turn.state, known], ['running', false]);
  const end = await session.reaches(turn.turnId, 'completed');
  assert.ok(end.endedUnixMs !== null && end.endedUnixMs >= end.startedUnixMs);

  const { replies, hasMore } = await session.output();
  assert.deepEqual(
    replies.map(({ seq, turnId, text, truncated }) => [seq, turnId, text, truncated]),
    [
      [1, turn.turnId, 'hello', false],
      [2, turn.turnId, 'world', false],
    ],
  );
  assert.equal(hasMore, false);
  assert.deepEqual(await session.texts(1), ['world']);
  assert.deepEqual(
    (await session.turns()).turns.map(({ text, author, number }) => [text, author, number]),
    [['say hello\nsay world', 'user', 1]],
  );
});

test('a turn id runs once, however often and however concurrently it is sent', async (t) => {
  const session = await (await AgentDaemon.start(t)).session();
  const turnId = newTurn();
  const sent = await Promise.all(Array.from({ length: 20 }, () => session.send('say once', turnId)));
  assert.equal(sent.filter(({ known }) => !known).length, 1);
  await session.reaches(turnId, 'completed');
  const again = await session.send('say once', turnId);
  assert.deepEqual([again.known, again.turn.state], [true, 'completed']);
  assert.deepEqual(await session.effects(), [turnId]);
  assert.deepEqual(await session.texts(), ['once']);
});

test('a second message is refused while a turn is active, and leaves no trace', async (t) => {
  const session = await (await AgentDaemon.start(t)).session();
  const { turn } = await session.send('hang');
  const second = newTurn();
  await assert.rejects(session.send('say no', second), { status: 409, code: 'agent_turn_active' });
  assert.equal((await session.turn(second)).turn, null);
  await session.interrupt();
  await session.reaches(turn.turnId, 'canceled');
  assert.equal((await session.send('say yes', second)).known, false);
  await session.reaches(second, 'completed');
});

test('messages are refused as they arrive, also while the bridge is too slow to read them', async (t) => {
  const session = await (await AgentDaemon.start(t)).session();
  const { bridge } = await session.owners();
  process.kill(bridge.pid, 'SIGSTOP');
  const [first, second] = [newTurn(), newTurn()];
  const sent = session.send('say first', first);
  // The guest daemon gives the bridge the first to arrive, and refuses the other at once.
  const refused = await Promise.any([
    assert.rejects(session.send('say second', second), { status: 409, code: 'agent_turn_active' }).then(() => second),
    assert.rejects(sent, { status: 409, code: 'agent_turn_active' }).then(() => first),
  ]);
  process.kill(bridge.pid, 'SIGCONT');
  const taken = refused === first ? second : first;
  await session.reaches(taken, 'completed');
  assert.deepEqual(await session.effects(), [taken]);
  assert.equal((await session.turn(refused)).turn, null);
});

test('a void turn never runs, and a turn that was taken cannot be voided', async (t) => {
  const session = await (await AgentDaemon.start(t)).session();
  const late = newTurn();
  assert.equal((await session.void(late)).turn.state, 'void');
  assert.equal((await session.void(late)).turn.state, 'void');
  await assert.rejects(session.send('say late', late), { code: 'agent_turn_void' });
  const { turnId } = await session.run('say taken');
  assert.equal((await session.void(turnId)).turn.state, 'completed');
  assert.deepEqual(await session.effects(), [turnId]);
  assert.deepEqual(
    (await session.get()).recentTurns.map((turn) => turn.turnId),
    [turnId],
  );
});

test('a stopped bridge refuses messages, answers and interrupts by its own code', async (t) => {
  const session = await (await AgentDaemon.start(t)).session();
  await session.send('ask delete it');
  await session.kill('bridge');
  await session.stopped();
  const refused = { status: 409, code: 'agent_bridge_stopped' };
  await assert.rejects(session.send('say no'), refused);
  await assert.rejects(session.answer(1, 'accept'), refused);
  await assert.rejects(session.interrupt(), refused);
});

test('a void holds without a live bridge, and after a recovery', async (t) => {
  const session = await (await AgentDaemon.start(t)).session();
  await session.kill('bridge');
  await session.stopped();
  const late = newTurn();
  assert.equal((await session.void(late)).turn.state, 'void');
  await assert.rejects(session.send('say late', late), { code: 'agent_turn_void' });
  assert.equal((await session.recover()).outcome, 'ready');
  await assert.rejects(session.send('say late', late), { code: 'agent_turn_void' });
  assert.deepEqual(await session.effects(), []);
});

test('a failed turn has its reason, and the conversation continues', async (t) => {
  const session = await (await AgentDaemon.start(t)).session();
  const failed = await session.run('fail no model');
  assert.deepEqual([failed.state, failed.reason], ['failed', 'agent_error']);
  assert.equal((await session.run('history')).state, 'completed');
  assert.deepEqual(await session.texts(), ['2']);
});

test('output pages are limited in replies and in UTF-16 units, and lose nothing', async (t) => {
  const session = await (await AgentDaemon.start(t)).session();
  await session.run(`stream 250 0\nlarge ${AGENT_TEXT_UNITS - 10}\nsay 12345678901\nlarge ${AGENT_TEXT_UNITS + 1}`);
  const seen: number[] = [];
  const pages: number[] = [];
  for (let after = 0, isMore = true; isMore;) {
    const { replies, hasMore } = await session.output(after);
    pages.push(replies.length);
    seen.push(...replies.map(({ seq }) => seq));
    isMore = hasMore;
    after = seen.at(-1) ?? 0;
  }
  assert.deepEqual(
    seen,
    Array.from({ length: 253 }, (_, index) => index + 1),
  );
  assert.deepEqual(pages, [100, 100, 50, 1, 1, 1]);
  const last = (await session.output(252)).replies[0];
  assert.deepEqual([last?.text.length, last?.truncated], [AGENT_TEXT_UNITS, true]);
});

test('a bounded wait returns at the next reply and at the next change', async (t) => {
  const session = await (await AgentDaemon.start(t)).session();
  const { revision } = await session.view();
  const change = session.get(`?revision=${revision}&waitMs=20000`);
  const reply = session.output(0, 100, '&waitMs=20000');
  const { turn } = await session.send('say now\nhang');
  assert.ok((await change).session.revision > revision);
  assert.deepEqual(
    (await reply).replies.map(({ text }) => text),
    ['now'],
  );
  assert.deepEqual((await session.output(1, 100, '&waitMs=1')).replies, []);
  await session.interrupt();
  await session.reaches(turn.turnId, 'canceled');
});

test('an interrupt ends the turn while it streams, runs a command or hangs, with its processes', async (t) => {
  const session = await (await AgentDaemon.start(t)).session();
  for (const text of ['stream 1000000 5', 'run echo $$ >pid; sleep 1000', 'hang', 'background sleep 1000\nhang']) {
    const { turn } = await session.send(text);
    if (text.startsWith('run')) await session.agents.daemon.number('pid');

    await session.interrupt();
    assert.equal((await session.reaches(turn.turnId, 'canceled')).reason, null, text);
    const left = await session.agents.daemon.exec(`grep -lszx BERTH_AGENT_SESSION=${session.id} /proc/*/environ`);
    assert.equal(left.stdout.trim().split('\n').length, 1, `only the agent is left: ${left.stdout}`);
  }
  await assert.rejects(session.interrupt(), { code: 'agent_turn_not_active' });
  assert.equal((await session.run('say still here')).state, 'completed');
});

test('an agent that ignores the interrupt is ended and resumed', async (t) => {
  const session = await (await AgentDaemon.start(t)).session();
  const { turn } = await session.send('deaf');
  const { agent } = await session.owners();
  await session.interrupt();
  assert.equal((await session.view()).turn?.state, 'interrupting');
  await session.reaches(turn.turnId, 'canceled');
  await until('it is ready again', async () => (await session.view()).bridge === 'ready');
  assert.notDeepEqual((await session.owners()).agent, agent);
  await session.run('history');
  assert.deepEqual(await session.texts(), ['2']);
});

test('background processes of a completed turn survive a stop of the agent', async (t) => {
  const session = await (await AgentDaemon.start(t)).session();
  await session.run("background echo $PPID >ignored; sh -c 'echo $$ >server; exec sleep 1000'");
  const server = await session.agents.daemon.number('server');
  await session.run('crash');
  await session.stopped();
  assert.ok(process.kill(server, 0));
  process.kill(server, 'SIGKILL');
});
