// Limits of agent sessions, their bridge programs, and hostile agents.
import assert from 'node:assert/strict';
import { appendFile, mkdir, readdir, readFile, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { makeRoom } from '../../src/agents/room.ts';
import type { AgentSession } from '../../src/agents/agent-session.ts';
import { runs, testUid, until } from '../daemon.ts';
import type { GuestAgentView } from '@berth/protocol/agents.ts';
import { AgentDaemon, newTurn, Refusal } from './agent-daemon.ts';

test('a daemon without sessions starts no process and writes no file for agents', async (t) => {
  const { daemon } = await AgentDaemon.start(t);
  assert.deepEqual(JSON.parse((await daemon.call('GET', '/agents')).text), { sessions: [] });
  assert.deepEqual(
    (await readdir(join(daemon.folder, 'run'))).filter((name) => name.startsWith('agent')),
    [],
  );
  await assert.rejects(readdir(join(daemon.folder, 'state')), { code: 'ENOENT' });
});

test('the files of sessions are closed to the user of commands', async (t) => {
  const session = await (await AgentDaemon.start(t)).session();
  await session.run('say secret');
  assert.equal((await stat(session.folder)).mode & 0o777, 0o700);
  for (const name of await readdir(session.folder))
    assert.equal((await stat(join(session.folder, name))).mode & 0o077, 0, name);
});

test('a bridge program is verified, and unused ones are removed', async (t) => {
  const agents = await AgentDaemon.start(t);
  const old = await agents.put(3);
  const current = await agents.put(7);
  const folder = join(agents.daemon.folder, 'state', 'agent-bridges');
  assert.deepEqual(await readdir(folder), [`${current}.mjs`]);
  const session = await agents.session();
  await agents.put(3);
  assert.deepEqual((await readdir(folder)).toSorted(), [`${old}.mjs`, `${current}.mjs`].toSorted());
  const wrong = await agents.daemon.open('PUT', `/agents/bridges/${'0'.repeat(64)}`, Buffer.from('code')).answer;
  assert.equal(wrong.status, 400, wrong.text);

  // As left by a power cut: it is not run, but sent again.
  await writeFile(join(folder, `${current}.mjs`), 'process.exit(1)');
  await session.kill('bridge');
  await session.stopped();
  assert.equal((await session.recover()).outcome, 'ready');
});

test('nonsense in the files of a session is confined to its reads, and the daemon still responds', async (t) => {
  const agents = await AgentDaemon.start(t);
  const [session, other] = [await agents.session(), await agents.session()];
  await session.run('say kept');
  const files = ['output.jsonl', 'messages.jsonl', 'turns.jsonl'];
  for (const name of files) await appendFile(join(session.folder, name), '{"no":1}\n[]\nnull\n}{\n');
  for (const name of files) await appendFile(join(session.folder, name), Buffer.alloc(150 * 1_024 * 1_024, 'x'));
  assert.deepEqual(await session.texts(), ['kept']);
  assert.equal((await session.turns()).turns.length, 1);
  await other.run('say other');
  assert.deepEqual(await other.texts(), ['other']);
  for (const name of files) await appendFile(join(session.folder, name), '\n');
  await writeFile(join(session.folder, 'session.json'), Buffer.alloc(20 * 1_024 * 1_024, '['));
  await session.kill('bridge');
  await until('the session is gone or stopped', async () => {
    const view = (await agents.call<{ sessions: GuestAgentView[] }>('GET', '/agents')).sessions;
    return view.every(({ sessionId, bridge }) => sessionId === other.id || bridge === 'stopped');
  });
  await assert.rejects(session.view(), { code: 'agent_session_missing' });
  await agents.session();
});

test('an agent that is not installed is refused', async (t) => {
  const agents = await AgentDaemon.start(t);
  const started = await agents.start('ags_aaaaaaaaaaaaaaaaaaaaaaaa', { scripted: false });
  assert.equal('code' in started && started.code, 'agent_not_installed');
  assert.equal(started.session, null);
  assert.deepEqual(await agents.call('GET', '/agents'), { sessions: [] });
});

test('the longest-idle of 8 live bridges stops for another one, and recovers', async (t) => {
  const agents = await AgentDaemon.start(t);
  const sessions = [];
  for (let number = 0; number < 8; number += 1) sessions.push(await agents.session());
  const [first, second] = sessions;
  assert.ok(first !== undefined && second !== undefined);
  await first.run('say newer');
  const ninth = await agents.session();
  assert.deepEqual([(await second.view()).bridge, (await second.view()).bridgeReason], ['stopped', 'memory']);
  assert.equal((await first.view()).bridge, 'ready');
  for (const session of [ninth, ...sessions].filter((one) => one !== second)) await session.send('hang');
  const refused = await second.recover();
  assert.equal('code' in refused && refused.code, 'agent_session_limit');
});

test('a session beyond the 64 kept ones is refused', async (t) => {
  const agents = await AgentDaemon.start(t);
  const session = await agents.session();
  await agents.daemon.stop('SIGKILL');
  const state = JSON.parse(await readFile(join(session.folder, 'session.json'), 'utf8')) as {
    view: { sessionId: string; bridge: string };
  };
  state.view.bridge = 'stopped';
  for (let number = 0; number < 63; number += 1) {
    const sessionId = `ags_${'a'.repeat(20)}${'abcdefgh'.charAt(number >> 3)}${'abcdefgh'.charAt(number & 7)}`;
    const folder = join(session.folder, '..', sessionId);
    await mkdir(folder, { mode: 0o700 });
    await writeFile(join(folder, 'session.json'), JSON.stringify({ ...state, view: { ...state.view, sessionId } }));
  }
  await agents.daemon.start();
  assert.equal((await agents.call<{ sessions: object[] }>('GET', '/agents')).sessions.length, 64);
  await assert.rejects(agents.session(), { code: 'agent_session_limit' });
  assert.equal((await session.run('say still')).state, 'completed');
});

test('bridges stop while free memory is short, and the refusal names memory', async () => {
  let freeMib = 100;
  const stopped: number[] = [];
  const fake = (lastUsedMs: number): AgentSession => {
    const session = { isLive: true, isIdle: true, lastUsedMs, stop: async () => {} };
    session.stop = async () => {
      session.isLive = session.isIdle = false;
      stopped.push(lastUsedMs);
      freeMib += 100;
    };
    return session as unknown as AgentSession;
  };
  const sessions = [fake(2), fake(1), fake(3)];
  await makeRoom(
    () => sessions,
    300,
    () => undefined,
    8,
    () => freeMib,
  );
  assert.deepEqual(stopped, [1, 2]);
  await assert.rejects(
    makeRoom(
      () => sessions,
      900,
      () => undefined,
      8,
      () => freeMib,
    ),
    /needs 900 MiB/,
  );
});

test('requests are validated, and unknown sessions are reported', async (t) => {
  const agents = await AgentDaemon.start(t);
  const path = `/agents/ags_${'a'.repeat(24)}`;
  for (const [method, rest] of [
    ['GET', ''],
    ['GET', `/turns/${newTurn()}`],
    ['GET', '/output?after=0&limit=1'],
    ['GET', '/turns?after=0&limit=1'],
    ['POST', '/interrupt'],
    ['POST', `/turns/${newTurn()}/void`],
  ] as const)
    await assert.rejects(agents.call(method, `${path}${rest}`), { status: 404, code: 'agent_session_missing' }, rest);

  const session = await agents.session();
  const { runId } = await session.view();
  for (const body of [
    { turnId: 'trn_1', runId, text: 'a', keyed: true, author: '' },
    { turnId: newTurn(), runId: 'x', text: 'a', keyed: true, author: '' },
    { turnId: newTurn(), runId, text: '', keyed: true, author: '' },
    { turnId: newTurn(), runId, text: 'a', keyed: 1, author: '' },
    { turnId: newTurn(), runId, text: 'a'.repeat(131_073), keyed: true, author: '' },
  ])
    await assert.rejects(agents.call('POST', `${session.path}/messages`, body), { status: 400 });

  assert.equal((await session.run('\u{1f9ad}'.repeat(65_536))).state, 'completed');
  await assert.rejects(session.output(0, 101), (error) => error instanceof Refusal && error.status === 400);
});

test(
  'an agent that kills every process of its user ends its turn only',
  { skip: process.getuid?.() !== 0 },
  async (t) => {
    const session = await (await AgentDaemon.start(t)).session();
    const { bridge } = await session.owners();
    const { turn } = await session.send('say before\nrun kill -9 -1');
    const end = await session.reaches(turn.turnId, 'failed');
    assert.equal(end.reason, 'agent_ended');
    await session.stopped();
    assert.equal((await session.recover()).outcome, 'ready');
    assert.deepEqual(await session.texts(), ['before']);
    assert.equal(await runs(bridge.pid), false, 'the bridge ended with its agent, after the end of the turn');
    assert.notEqual(testUid, 0);
  },
);

test('floods of replies and output are bounded, and the bridge still responds', async (t) => {
  const session = await (await AgentDaemon.start(t)).session();
  const { turn } = await session.send('stream 20000 0\nrun head -c 1073741824 /dev/zero\nsay end');
  await session.reaches(turn.turnId, 'completed');
  assert.equal((await session.view()).lastSeq, 20_002);
  const { replies } = await session.output(20_000);
  assert.deepEqual(
    replies.map(({ text }) => text.length),
    [100_000, 3],
  );
  const { bridge } = await session.owners();
  const memory = await readFile(`/proc/${bridge.pid}/status`, 'latin1');
  assert.ok(Number(/VmHWM:\s+(\d+)/.exec(memory)?.[1]) < 200 * 1_024, memory);
});
