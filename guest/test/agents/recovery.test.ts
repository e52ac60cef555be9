// Ends of the agent, the bridge, the guest daemon and the VM, and the recovery after them.
import assert from 'node:assert/strict';
import { appendFile, readFile, rm, truncate, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { killProcess, readProcess } from '@berth/os/process-identity.ts';
import { AGENT_SEQ_GAP } from '@berth/protocol/agent-errors.ts';
import type { GuestAgentView } from '@berth/protocol/agents.ts';
import { runs, until } from '../daemon.ts';
import { AgentDaemon, newSessionId, newTurn, TestSession } from './agent-daemon.ts';

/** A turn that runs a command, whose pid is returned. */
async function running(session: TestSession): Promise<{ turnId: string; pid: number }> {
  const { daemon } = session.agents;
  await rm(join(daemon.codeFolder, 'pid'), { force: true });
  const { turn } = await session.send('say before\nrun echo $$ >pid; sleep 1000\nsay never');
  return { turnId: turn.turnId, pid: await daemon.number('pid') };
}

test('a killed agent fails its turn, and recovery keeps history and cursors', async (t) => {
  const session = await (await AgentDaemon.start(t)).session();
  const { turnId, pid } = await running(session);
  await session.kill('agent');
  const view = await session.stopped();
  assert.deepEqual([view.bridgeReason, view.turn?.state, view.turn?.reason], ['agent_ended', 'failed', 'agent_ended']);
  await until('its command is gone', async () => !(await runs(pid)));
  assert.deepEqual(await session.texts(), ['before']);
  await assert.rejects(session.send('say no'), { code: 'agent_bridge_stopped' });

  assert.equal((await session.recover()).outcome, 'ready');
  assert.equal((await session.turn(turnId)).turn?.state, 'failed');
  await session.run('history');
  const { replies } = await session.output();
  assert.deepEqual(
    replies.map(({ seq, text }) => [seq, text]),
    [
      [1, 'before'],
      [2, '2'],
    ],
  );
  assert.equal((await session.effects()).length, 2);
});

test('a killed bridge fails its turn, ends its processes, and the session recovers', async (t) => {
  const session = await (await AgentDaemon.start(t)).session();
  const { turnId, pid } = await running(session);
  const { agent } = await session.owners();
  await session.kill('bridge');
  const view = await session.stopped();
  assert.deepEqual(
    [view.bridgeReason, view.turn?.state, view.turn?.reason],
    ['bridge_ended', 'failed', 'bridge_ended'],
  );
  assert.deepEqual([await runs(pid), await runs(agent?.pid ?? 0)], [false, false]);
  const again = await session.send('say again', turnId);
  assert.deepEqual([again.known, again.turn.state], [true, 'failed']);
  assert.equal((await session.recover()).outcome, 'ready');
  assert.deepEqual((await session.send('say again', turnId)).turn.state, 'failed');
  assert.equal((await session.run('say on')).state, 'completed');
  assert.deepEqual(await session.texts(), ['before', 'on']);
  assert.equal((await session.effects()).length, 2);
});

test('recovering a ready session changes nothing', async (t) => {
  const session = await (await AgentDaemon.start(t)).session();
  const before = await session.owners();
  const { revision } = await session.view();
  assert.equal((await session.recover()).session?.revision, revision);
  assert.deepEqual(await session.owners(), before);
});

test('recovery is refused while a recorded process is alive', async (t) => {
  const session = await (await AgentDaemon.start(t)).session();
  await session.kill('bridge');
  await session.stopped();
  const owners = await session.owners();
  const alive = await readProcess(process.pid);
  await writeFile(join(session.folder, 'owner.json'), JSON.stringify({ ...owners, agent: alive }));
  const refused = await session.recover();
  assert.deepEqual([refused.outcome, 'code' in refused && refused.code], ['refused', 'agent_process_alive']);
  await writeFile(
    join(session.folder, 'owner.json'),
    JSON.stringify({ ...owners, agent: { ...alive, startTicks: '1' } }),
  );
  assert.equal((await session.recover()).outcome, 'ready');
});

test('recovery is refused without the conversation, and without the sign-in', async (t) => {
  const agents = await AgentDaemon.start(t);
  const session = await agents.session();
  const folder = join(agents.daemon.codeFolder, '.scripted-agent');
  await session.run('say saved');
  await session.kill('agent');
  await session.stopped();
  await writeFile(join(folder, 'signed-out'), '');
  const signedOut = await session.recover();
  assert.deepEqual(
    ['code' in signedOut && signedOut.code, signedOut.session?.bridgeReason],
    ['agent_not_signed_in', 'not_signed_in'],
  );
  await agents.daemon.exec(`rm -r ${folder}`);
  const missing = await session.recover();
  assert.deepEqual(
    ['code' in missing && missing.code, missing.session?.bridgeReason],
    ['agent_conversation_missing', 'conversation_missing'],
  );
});

for (const signal of ['SIGKILL', 'SIGTERM'] as const) {
  test(`a turn continues over a guest daemon that gets ${signal}, with its approval`, async (t) => {
    const session = await (await AgentDaemon.start(t)).session();
    const { turn } = await session.send('ask it\nstream 3 1\nhang');
    await session.reaches(turn.turnId, 'waiting');
    const before = await session.view();
    await session.agents.daemon.stop(signal);
    await session.agents.daemon.start();
    const after = await session.view();
    assert.deepEqual([after.turn, after.prompt, after.runId], [before.turn, before.prompt, before.runId]);
    await session.answer(after.prompt?.requestId, 'accept');
    await until('all replies are there', async () => (await session.view()).lastSeq === 4);
    await session.interrupt();
    await session.reaches(turn.turnId, 'canceled');
    assert.deepEqual(await session.effects(), [turn.turnId]);
  });
}

test('a bridge that dies while no guest daemon runs fails its turn at the next start', async (t) => {
  const session = await (await AgentDaemon.start(t)).session();
  const { turnId, pid } = await running(session);
  await session.agents.daemon.stop('SIGKILL');
  await session.kill('bridge');
  await session.agents.daemon.start();
  const { turn } = await session.turn(turnId);
  assert.deepEqual([turn?.state, turn?.reason, await runs(pid)], ['failed', 'bridge_ended', false]);
  assert.equal((await session.recover()).outcome, 'ready');
});

test('after a boot of the disk turns are lost, and no cursor or request id is used again', async (t) => {
  const session = await (await AgentDaemon.start(t)).session();
  const { turn } = await session.send('say kept\nask it');
  await session.reaches(turn.turnId, 'waiting');
  const before = await session.view();
  const { agent } = await session.owners();
  await session.agents.daemon.stop('SIGKILL');
  await session.kill('bridge');
  process.kill(agent?.pid ?? 0, 'SIGKILL');
  await rm(join(session.agents.daemon.folder, 'run'), { recursive: true });
  await session.agents.daemon.start();
  const view = await session.view();
  assert.deepEqual(
    [view.bridge, view.bridgeReason, view.turn?.state, view.turn?.reason, view.prompt],
    ['stopped', 'machine_lost', 'failed', 'machine_lost', null],
  );
  assert.notEqual(view.runId, before.runId);
  assert.ok(view.revision > before.revision);
  assert.deepEqual(await session.texts(), ['kept']);
  await session.recover();
  const { turn: next } = await session.send('say new\nask again');
  await session.reaches(next.turnId, 'waiting');
  assert.deepEqual(
    (await session.output(1)).replies.map(({ seq, text }) => [seq, text]),
    [[AGENT_SEQ_GAP + 2, 'new']],
  );
  assert.ok(((await session.view()).prompt?.requestId ?? 0) > AGENT_SEQ_GAP);
});

test('files torn by a power cut lose their last line only', async (t) => {
  const session = await (await AgentDaemon.start(t)).session();
  await session.run('say one');
  const second = await session.run('say two');
  await session.kill('bridge');
  await session.stopped();
  for (const name of ['output.jsonl', 'turns.jsonl', 'messages.jsonl']) {
    const file = join(session.folder, name);
    await truncate(file, (await readFile(file)).length - 4);
  }
  await appendFile(join(session.folder, 'output.jsonl'), Buffer.alloc(100));
  await session.agents.daemon.stop('SIGKILL');
  await rm(join(session.agents.daemon.folder, 'run'), { recursive: true });
  await session.agents.daemon.start();
  assert.deepEqual(await session.texts(), ['one']);
  assert.equal((await session.turn(second.turnId)).turn?.reason, 'machine_lost');
  assert.equal((await session.recover()).outcome, 'ready');
  await session.run('say three');
  assert.deepEqual(await session.texts(), ['one', 'three']);
  assert.ok((await session.view()).lastSeq > AGENT_SEQ_GAP);
});

for (const version of [3, 6]) {
  test(`a bridge of version ${version} refuses keyed messages, and a recovery upgrades it`, async (t) => {
    const session = await (await AgentDaemon.start(t)).session({ version });
    assert.equal((await session.view()).bridgeVersion, version);
    const turnId = newTurn();
    await assert.rejects(session.send('say no', turnId), { code: 'agent_bridge_too_old' });
    assert.equal((await session.turn(turnId)).turn, null);
    const { turn } = await session.send('say yes', turnId, false);
    await session.reaches(turn.turnId, 'completed');
    assert.equal((await session.owners()).agent !== null, version >= 4);

    await session.recover(7);
    assert.equal((await session.view()).bridgeVersion, version, 'a ready bridge is left alone');
    await session.send('crash', newTurn(), false);
    await session.stopped();
    assert.equal((await session.recover(7)).outcome, 'ready');
    assert.equal((await session.view()).bridgeVersion, 7);
    assert.equal((await session.run('say keyed')).state, 'completed');
  });
}

test('a bridge that hangs is ended, and its turn fails', async (t) => {
  const session = await (await AgentDaemon.start(t, { BERTH_GUEST_AGENT_PING_MS: '200' })).session();
  const { turnId } = await running(session);
  await killProcess((await session.owners()).bridge, 'SIGSTOP');
  assert.equal((await session.stopped()).bridgeReason, 'bridge_ended');
  assert.equal((await session.turn(turnId)).turn?.state, 'failed');
  assert.equal((await session.recover()).outcome, 'ready');
});

test('an idle bridge stops by itself and recovers with its conversation', async (t) => {
  const session = await (await AgentDaemon.start(t, { BERTH_GUEST_AGENT_IDLE_MS: '2000' })).session();
  await session.run('say one');
  assert.equal((await session.stopped()).bridgeReason, 'idle');
  await session.recover();
  await session.run('history');
  assert.deepEqual(await session.texts(), ['one', '2']);
});

test('a create and a recover whose callers disconnect complete, and a repeated one finds the bridge', async (t) => {
  const agents = await AgentDaemon.start(t);
  const bridge = await agents.put();
  const session = new TestSession(agents, newSessionId());
  for (const mode of ['create', 'recover'] as const) {
    const body = { agent: 'agent_one', mode, approvals: 'ask', gatewayUrl: null, bridge, scripted: true };
    const { request, answer } = agents.daemon.open('POST', `${session.path}/start`, JSON.stringify(body));
    const left = assert.rejects(answer);
    const bridges = async (): Promise<string[]> =>
      (await agents.call<{ sessions: GuestAgentView[] }>('GET', '/agents')).sessions.map((view) => view.bridge);
    await until('the start has begun', async () => (await bridges()).some((state) => state !== 'stopped'));
    request.destroy();
    await left;
    await until('the bridge is ready', async () => (await bridges()).join() === 'ready');
    const owners = await session.owners();
    assert.equal((await agents.start(session.id, { mode })).outcome, 'ready');
    assert.deepEqual(await session.owners(), owners);
    await session.kill('bridge');
    await session.stopped();
  }
});
