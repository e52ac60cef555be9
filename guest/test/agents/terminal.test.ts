// Terminals of agents: one program in tmux, shared by connections and independent of them.
import assert from 'node:assert/strict';
import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { readProcess } from '@berth/os/process-identity.ts';
import { runs, testUid, until } from '../daemon.ts';
import { refusalOf } from '../terminals/connection.ts';
import { AgentDaemon, type TestSession } from './agent-daemon.ts';
import { Connected } from './connected.ts';

async function terminalIn(
  t: TestContext,
  env: Record<string, string> = {},
): Promise<{ agents: AgentDaemon; session: TestSession }> {
  const agents = await AgentDaemon.start(t, env);
  t.after(() => rm(`/tmp/tmux-${testUid}`, { recursive: true, force: true }));
  return { agents, session: await agents.session({ surface: 'terminal' }) };
}

test('connections share a program, which outlives them and a restart of the daemon', async (t) => {
  const { agents, session } = await terminalIn(t);
  const { surface, bridge, turn, lastSeq } = await session.view();
  assert.deepEqual([surface, bridge, turn, lastSeq], ['terminal', 'ready', null, 0]);
  const [first, second] = [await Connected.open(session), await Connected.open(session)];
  const pid = await first.program();
  assert.equal(await second.program(), pid);
  first.type('from the first\r');
  await second.shows(/heard: from the first/);
  first.close();
  second.close();

  const after = await Connected.open(session);
  await after.shows(/heard: from the first/);
  await agents.daemon.stop('SIGKILL');
  await agents.daemon.start();
  await until('the daemon has found the session', async () => (await session.view()).bridge === 'ready');
  const again = await Connected.open(session);
  assert.equal(await again.program(), pid);
  again.type('quit\r');
  assert.deepEqual(await again.exit(), { exit: 0 });
});

test('a program that exits stops its session, and the next start runs another', async (t) => {
  const { agents, session } = await terminalIn(t);
  const connected = await Connected.open(session);
  const pid = await connected.program();
  connected.type('quit\r');
  assert.deepEqual(await connected.exit(), { exit: 0 });
  assert.equal((await session.stopped()).bridgeReason, 'agent_ended');
  const query = `?agent=${session.id}&cols=80&rows=24`;
  const refused = await refusalOf(agents.daemon, query);
  assert.deepEqual([refused.status, /agent_bridge_stopped/.test(refused.text)], [409, true]);

  assert.equal((await agents.start(session.id, { surface: 'terminal' })).outcome, 'ready');
  assert.notEqual(await (await Connected.open(session)).program(), pid);
});

for (const killed of ['program', 'tmux', 'bridge'] as const) {
  test(`a killed ${killed} stops the session with all of its programs; a start follows`, async (t) => {
    const { agents, session } = await terminalIn(t);
    const connected = await Connected.open(session);
    const pid = await connected.program();
    const { bridge, agent } = await session.owners();
    if (killed === 'program') process.kill(pid, 'SIGKILL');
    else await session.kill(killed === 'tmux' ? 'agent' : 'bridge');

    const { bridgeReason } = await session.stopped();
    assert.equal(bridgeReason, killed === 'bridge' ? 'bridge_ended' : 'agent_ended');
    for (const each of [pid, bridge.pid, agent?.pid ?? 0])
      await until(`${each} is gone`, async () => !(await runs(each)));
    assert.equal((await agents.start(session.id, { surface: 'terminal' })).outcome, 'ready');
    assert.notEqual(await (await Connected.open(session)).program(), pid);
  });
}

test('a start is refused while a recorded process of the terminal is alive', async (t) => {
  const { agents, session } = await terminalIn(t);
  await session.kill('bridge');
  await session.stopped();
  const alive = await readProcess(process.pid);
  await writeFile(join(session.folder, 'owner.json'), JSON.stringify({ ...(await session.owners()), agent: alive }));
  const refused = await agents.start(session.id, { surface: 'terminal' });
  assert.deepEqual([refused.outcome, 'code' in refused && refused.code], ['refused', 'agent_process_alive']);
  const another = { ...alive, startTicks: '1' };
  await writeFile(join(session.folder, 'owner.json'), JSON.stringify({ ...(await session.owners()), agent: another }));
  assert.equal((await agents.start(session.id, { surface: 'terminal' })).outcome, 'ready');
});

test('a terminal is not stopped as idle, and takes no messages', async (t) => {
  const { agents, session } = await terminalIn(t, { BERTH_GUEST_AGENT_IDLE_MS: '1' });
  const managed = await agents.session();
  assert.equal((await managed.stopped()).bridgeReason, 'idle');
  assert.equal((await session.view()).bridge, 'ready');
  await assert.rejects(session.send('say no'), { code: 'agent_unsupported' });
  await assert.rejects(session.answer(1, 'accept'), { code: 'agent_prompt_not_pending' });
  await assert.rejects(session.interrupt(), { code: 'agent_turn_not_active' });
  assert.deepEqual((await session.output()).replies, []);
  const { turn, bridge } = await session.view();
  assert.deepEqual([turn, bridge], [null, 'ready']);
});

test('only a terminal session has a terminal', async (t) => {
  const { agents } = await terminalIn(t);
  const managed = await agents.session();
  const managedTerminal = await refusalOf(agents.daemon, `?agent=${managed.id}&cols=80&rows=24`);
  assert.deepEqual([managedTerminal.status, /agent_unsupported/.test(managedTerminal.text)], [409, true]);
  const unknown = await refusalOf(agents.daemon, `?agent=ags_${'a'.repeat(24)}&cols=80&rows=24`);
  assert.deepEqual([unknown.status, /agent_session_missing/.test(unknown.text)], [404, true]);
  const mixed = await refusalOf(agents.daemon, `?agent=${managed.id}&cols=80&rows=24&command=true`);
  assert.equal(mixed.status, 400);
});

test('the terminal of an agent that is not installed is refused, and leaves no session', async (t) => {
  const agents = await AgentDaemon.start(t, { BERTH_GUEST_AGENTS_FILE: '/nonexistent' });
  const id = `ags_${'b'.repeat(24)}`;
  const refused = await agents.start(id, { surface: 'terminal', scripted: false });
  assert.deepEqual([refused.outcome, 'code' in refused && refused.code], ['refused', 'agent_not_installed']);
  assert.equal(refused.session, null);
});
