// The conversation of an agent's program in a terminal, shared by the person at its keys and by
// callers, with a program in the place of Codex.
import assert from 'node:assert/strict';
import { chmod, copyFile, link, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, test, type TestContext } from 'node:test';
import { fileURLToPath } from 'node:url';
import { readProcess } from '@berth/os/process-identity.ts';
import type { GuestTurn } from '@berth/protocol/agents.ts';
import { runs, testUid, until } from '../daemon.ts';
import { AgentDaemon, newTurn, type TestSession } from './agent-daemon.ts';
import { Connected } from './connected.ts';

const FAKE = fileURLToPath(new URL('../bridge/fake-codex.ts', import.meta.url));

interface Shared {
  agents: AgentDaemon;
  session: TestSession;
  person: Connected;
}

/** The fake Codex, with a Node that the sandbox user can run: the project may be private. */
let folder: string;
before(async () => {
  folder = await mkdtemp('/tmp/berth-fake-codex-');
  await chmod(folder, 0o755);
  const node = join(folder, 'node');
  await link(process.execPath, node).catch(() => copyFile(process.execPath, node));
  await copyFile(FAKE, join(folder, 'fake-codex.mts'));
  const codex = join(folder, 'codex');
  await writeFile(codex, `#!/bin/sh\nexec ${node} ${join(folder, 'fake-codex.mts')} "$@"\n`, { mode: 0o755 });
  const agents = [{ id: 'agent_one', version: '0', needsMib: 0, paths: { codex } }];
  await writeFile(join(folder, 'agents.json'), JSON.stringify({ agents }));
});
after(() => rm(folder, { recursive: true }));

/** A daemon whose Codex is the fake one. */
async function daemonWithCodex(t: TestContext): Promise<AgentDaemon> {
  const daemon = await AgentDaemon.start(t, { BERTH_GUEST_AGENTS_FILE: join(folder, 'agents.json') });
  t.after(() => rm(`/tmp/tmux-${testUid}`, { recursive: true, force: true }));
  return daemon;
}

async function sessionOf(t: TestContext, agents: AgentDaemon): Promise<TestSession> {
  const session = await agents.session({ surface: 'terminal', scripted: false });
  // A killed bridge leaves its socket.
  t.after(() => rm(`/run/berth-agent-${session.id}`, { recursive: true, force: true }));
  return session;
}

async function sharedIn(t: TestContext): Promise<Shared> {
  const agents = await daemonWithCodex(t);
  const session = await sessionOf(t, agents);
  await until('the conversation is open', async () => (await session.view()).conversation === 'open');
  return { agents, session, person: await Connected.open(session) };
}

/** The active turn, once a person has begun one. */
async function personsTurn(session: TestSession, state: GuestTurn['state'] = 'running'): Promise<GuestTurn> {
  await until(`a turn of a person is ${state}`, async () => {
    const { turn } = await session.view();
    return turn?.isPersons === true && turn.state === state;
  });
  return (await session.view()).turn as GuestTurn;
}

test('a person and a caller see the turns and replies of each other', async (t) => {
  const { session, person } = await sharedIn(t);
  person.type('say to the caller\r');
  await person.shows(/reply: to the caller/);
  const first = await personsTurn(session, 'completed');
  const { turn } = await session.send('say to the person');
  await person.shows(/message: say to the person[^]*reply: to the person/);
  assert.equal((await session.reaches(turn.turnId, 'completed')).isPersons, undefined);

  const { replies } = await session.output();
  assert.deepEqual(
    replies.map(({ turnId, text }) => [turnId, text]),
    [
      [first.turnId, 'to the caller'],
      [turn.turnId, 'to the person'],
    ],
  );
  const { turns } = await session.turns();
  assert.deepEqual(
    turns.map(({ turnId, text, author, isPersons }) => [turnId, text, author, isPersons]),
    [
      [first.turnId, 'say to the caller', '', true],
      [turn.turnId, 'say to the person', 'user', undefined],
    ],
  );
});

test('of a message and a typed text, the second is refused and never runs', async (t) => {
  const { session, person } = await sharedIn(t);
  person.type('hang\r');
  const { turnId } = await personsTurn(session);
  const refused = newTurn();
  await assert.rejects(session.send('say never', refused), { code: 'agent_turn_active' });
  assert.equal((await session.turn(refused)).turn, null);
  person.type('/stop\r');
  await session.reaches(turnId, 'canceled');

  const { turn } = await session.send('hang');
  await person.shows(/message: hang/);
  person.type('/late say never\r');
  await person.shows(/refused: another turn is active/);
  await session.interrupt();
  await session.reaches(turn.turnId, 'canceled');
  assert.equal((await session.run('say next')).state, 'completed');
  assert.deepEqual(await session.texts(), ['next']);
  assert.equal((await session.turns()).turns.length, 3);
});

test('a message with a known id is not delivered again', async (t) => {
  const { session, person } = await sharedIn(t);
  const { turn } = await session.send('say once');
  await session.reaches(turn.turnId, 'completed');
  assert.equal((await session.send('say once', turn.turnId)).known, true);
  await person.shows(/reply: once/);
  assert.deepEqual(await session.texts(), ['once']);
});

test('a caller answers the approval of a person, and a person that of a caller', async (t) => {
  const { session, person } = await sharedIn(t);
  person.type('ask make it\r');
  const asked = await personsTurn(session, 'waiting');
  const { prompt } = await session.get();
  assert.deepEqual([prompt?.turnId, prompt?.kind, prompt?.detail], [asked.turnId, 'command', 'make it']);
  await session.answer(prompt?.requestId, 'accept');
  await person.shows(/resolved[^]*reply: decision accept/);
  await session.reaches(asked.turnId, 'completed');

  const { turn } = await session.send('ask make another');
  await session.reaches(turn.turnId, 'waiting');
  const second = (await session.get()).prompt;
  await person.shows(/approval: make another/);
  person.type('/no\r');
  await session.reaches(turn.turnId, 'completed');
  await assert.rejects(session.answer(second?.requestId, 'accept'), { code: 'agent_prompt_not_pending' });
  assert.deepEqual(await session.texts(), ['decision accept', 'decision decline']);
});

test('either side ends the turn of the other', async (t) => {
  const { session, person } = await sharedIn(t);
  person.type('hang\r');
  const { turnId } = await personsTurn(session);
  await session.interrupt();
  await session.reaches(turnId, 'canceled');
  await person.shows(/turn interrupted/);

  const { turn } = await session.send('ask something');
  await session.reaches(turn.turnId, 'waiting');
  await person.shows(/approval: something/);
  person.type('/stop\r');
  assert.equal((await session.reaches(turn.turnId, 'canceled')).reason, null);
  assert.equal((await session.view()).prompt, null);
});

test('an agent that ignores an interrupt is ended, and its conversation resumed', async (t) => {
  const { session, person } = await sharedIn(t);
  const [, thread = ''] = await person.shows(/thread (\S+) untrusted/);
  person.type('deaf\r');
  const { turnId } = await personsTurn(session);
  await session.interrupt();
  await session.reaches(turnId, 'canceled');
  await until('the program is back', async () => {
    const { bridge, conversation } = await session.view();
    return bridge === 'ready' && conversation === 'open';
  });
  await (await Connected.open(session)).shows(new RegExp(`thread ${thread} `));
  assert.equal((await session.run('say next')).state, 'completed');
});

test('messages follow the thread that the program shows, and wait for its first', async (t) => {
  const agents = await daemonWithCodex(t);
  await writeFile(join(agents.daemon.codeFolder, 'hold'), '');
  const session = await sessionOf(t, agents);
  const person = await Connected.open(session);
  await person.shows(/no thread/);
  assert.equal((await session.view()).conversation, 'pending');
  const early = newTurn();
  await assert.rejects(session.send('say early', early), { code: 'agent_not_ready' });
  assert.equal((await session.turn(early)).turn, null);

  const savedIds = new Set<string>();
  for (const text of ['first', 'second']) {
    person.type('/new\r');
    const [, shown = ''] = await person.shows(
      savedIds.size === 0 ? /thread (\S+) never/ : /thread .*thread (\S+) never/s,
    );
    savedIds.add(shown);
    assert.equal((await session.run(`say ${text}`)).state, 'completed');
  }
  assert.equal(savedIds.size, 2);
  assert.deepEqual(await session.texts(), ['first', 'second']);
});

test('a thread asks before each command, unless a person chose otherwise', async (t) => {
  const { person } = await sharedIn(t);
  await person.shows(/thread \S+ untrusted/);
  person.type('/new\r');
  await person.shows(/thread \S+ never/);
});

for (const killed of ['program', 'app-server', 'bridge'] as const) {
  test(`the end of the ${killed} fails the active turn and ends the rest`, async (t) => {
    const { agents, session, person } = await sharedIn(t);
    person.type('hang\r');
    const { turnId } = await personsTurn(session);
    const { agent } = await session.owners();
    const server = Number((await agents.daemon.exec(`pgrep -u ${testUid} -f 'fake-codex.mt[s] app-server'`)).stdout);
    if (killed === 'program') person.type('/quit\r');
    else if (killed === 'bridge') await session.kill('bridge');
    else process.kill(server, 'SIGKILL');

    const { bridgeReason } = await session.stopped();
    const reason = killed === 'bridge' ? 'bridge_ended' : 'agent_ended';
    const turn = (await session.turn(turnId)).turn;
    assert.deepEqual([bridgeReason, turn?.state, turn?.reason], [reason, 'failed', reason]);
    for (const pid of [server, agent?.pid ?? 0]) await until(`${pid} is gone`, async () => !(await runs(pid)));
    assert.equal((await agents.start(session.id, { surface: 'terminal', scripted: false })).outcome, 'ready');
  });
}

/** Ends the program of the session as its person does. */
async function quit({ session, person }: Shared): Promise<void> {
  person.type('/quit\r');
  await session.stopped();
}

const TERMINAL = { surface: 'terminal', scripted: false } as const;
const RECOVER = { ...TERMINAL, mode: 'recover' } as const;

for (const mode of ['recover', 'create'] as const) {
  test(`a terminal started again to ${mode} resumes its conversation, and cursors stay valid`, async (t) => {
    const shared = await sharedIn(t);
    const { agents, session, person } = shared;
    const [, thread = ''] = await person.shows(/thread (\S+) untrusted/);
    assert.equal((await session.run('say before')).state, 'completed');
    const { seq = 0 } = (await session.output()).replies[0] ?? {};
    // A thread without a message is not saved.
    person.type('/new\r');
    await person.shows(/thread \S+ never/);
    await quit(shared);

    assert.equal((await agents.start(session.id, { ...TERMINAL, mode })).outcome, 'ready');
    await until('the conversation is open', async () => (await session.view()).conversation === 'open');
    await (await Connected.open(session)).shows(new RegExp(`thread ${thread} `));
    assert.equal((await session.run('say after')).state, 'completed');
    assert.deepEqual(await session.texts(seq), ['after']);
  });
}

test('a recovery leaves a ready terminal alone', async (t) => {
  const { agents, session } = await sharedIn(t);
  const owners = await session.owners();
  assert.equal((await agents.start(session.id, RECOVER)).outcome, 'ready');
  assert.deepEqual(await session.owners(), owners);
});

test('a recovery without a saved conversation is refused; the next opening begins another', async (t) => {
  const shared = await sharedIn(t);
  const { agents, session } = shared;
  await session.run('say before');
  await quit(shared);
  await rm(join(agents.daemon.codeFolder, 'fake-threads'), { recursive: true });
  const refused = await agents.start(session.id, RECOVER);
  assert.deepEqual([refused.outcome, 'code' in refused && refused.code], ['refused', 'agent_conversation_missing']);
  assert.equal((await agents.start(session.id, TERMINAL)).outcome, 'ready');
  await until('the conversation is open', async () => (await session.view()).conversation === 'open');
  assert.equal((await session.run('say after')).state, 'completed');
});

test('a recovery is refused while a recorded process is alive, and without the record', async (t) => {
  const shared = await sharedIn(t);
  const { agents, session } = shared;
  await session.run('say before');
  const owners = JSON.parse(await readFile(join(session.folder, 'owner.json'), 'utf8')) as { others: unknown[] };
  assert.equal(owners.others.length, 1);
  await quit(shared);
  const alive = await readProcess(process.pid);
  await writeFile(join(session.folder, 'owner.json'), JSON.stringify({ ...owners, others: [alive] }));
  const refused = await agents.start(session.id, RECOVER);
  assert.deepEqual([refused.outcome, 'code' in refused && refused.code], ['refused', 'agent_process_alive']);
  await rm(join(session.folder, 'owner.json'));
  const unknown = await agents.start(session.id, RECOVER);
  assert.deepEqual([unknown.outcome, 'code' in unknown && unknown.code], ['refused', 'agent_conversation_missing']);
});
