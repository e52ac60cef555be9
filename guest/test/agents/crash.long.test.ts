// Kills the guest daemon, or a bridge, at each change of an agent file, and lets each write fail: a
// message takes effect at most once, recorded turns and replies stay, and the session works again.
import assert from 'node:assert/strict';
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { bundleGuestDaemon } from '../../src/bundle.ts';
import { sampleOf } from '../../../os/test/long-run.ts';
import { runs, until } from '../daemon.ts';
import { AgentDaemon, newSessionId, newTurn, Refusal, TestSession } from './agent-daemon.ts';
import type { CrashOrder } from './crash-hook.ts';

const FINAL = ['completed', 'failed', 'canceled'] as const;
/** A turn that has two replies, and an approval between them. */
const ASKING = 'say before\nask it\nsay after';

const folder = await mkdtemp(join(tmpdir(), 'berth-guest-crash-'));
after(() => rm(folder, { recursive: true }));
const hook = join(folder, 'hook.mjs');
await writeFile(hook, (await bundleGuestDaemon(join(import.meta.dirname, 'crash-hook.ts'))).code);

/** A session with the turn under test. */
interface Subject {
  agents: AgentDaemon;
  session: TestSession;
  turnId: string;
}

interface Scenario {
  title: string;
  role: CrashOrder['role'];
  /** Changes that the program makes: fewer would mean that the crashes miss some. */
  atLeast: number;
  arrange(this: void, agents: AgentDaemon): Promise<TestSession>;
  /** Its calls may fail. */
  act(this: void, subject: Subject): Promise<unknown>;
  check(this: void, subject: Subject): Promise<void>;
}

/** Sends the message, answers its approval, and waits for its end. */
async function runAsking({ session, turnId }: Subject): Promise<void> {
  await session.send(ASKING, turnId);
  const { state } = await session.reaches(turnId, 'waiting', ...FINAL);
  if (state === 'waiting') await session.answer((await session.view()).prompt?.requestId, 'accept');
  await session.reaches(turnId, ...FINAL);
}

/** Kills the bridge; its agent, which lives for a moment longer, is gone too. */
async function killed(session: TestSession): Promise<TestSession> {
  const { agent } = await session.owners();
  await session.kill('bridge');
  await session.stopped();
  if (agent !== null) await until('the agent is gone', async () => !(await runs(agent.pid)));
  return session;
}

/** Whether an argument of a process names the session. */
async function isNamed(id: string): Promise<boolean> {
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name));
  const lines = pids.map((pid) => readFile(`/proc/${pid}/cmdline`, 'latin1').catch(() => ''));
  return (await Promise.all(lines)).some((line) => line.includes(id));
}

/** The session becomes ready again: recovered, or created if nothing of it was recorded. */
async function makeReady({ agents, session }: Subject): Promise<void> {
  let isKnown = true;
  await until('the session is at rest', async () => {
    const view = await session.view().catch((error: unknown) => {
      if (!(error instanceof Refusal) || error.code !== 'agent_session_missing') throw error;
      isKnown = false;
    });
    // A bridge that was killed is noticed a moment later.
    return view === undefined || view.bridge === 'stopped' || (await isAlive(session));
  });
  const started = await agents.start(session.id, { mode: isKnown ? 'recover' : 'create' });
  assert.equal(started.outcome, 'ready', JSON.stringify(started));
}

async function isAlive(session: TestSession): Promise<boolean> {
  return await session.agents
    .call('POST', `${session.path}/turns/${newTurn()}/void`)
    .then(async () => (await session.view()).bridge === 'ready');
}

/** A resend of the turn changes nothing that was recorded, and the next message works. */
async function checkTurn(subject: Subject): Promise<void> {
  const { session, turnId } = subject;
  await makeReady(subject);
  let { turn } = await session.turn(turnId);
  if (turn?.state === 'waiting') {
    // The answer was not taken.
    await session.answer((await session.view()).prompt?.requestId, 'accept');
    turn = await session.reaches(turnId, ...FINAL);
  }
  const before = await session.texts();
  if (turn === null) {
    await runAsking(subject);
  } else {
    assert.ok((FINAL as readonly string[]).includes(turn.state), `the turn is ${turn.state}`);
    const again = await session.send(ASKING, turnId);
    assert.deepEqual([again.known, again.turn], [true, turn]);
  }
  assert.deepEqual((await session.texts()).slice(0, before.length), before, 'a reply is lost');
  assert.equal((await session.run('say next')).state, 'completed');
  const effects = (await session.effects()).filter((id) => id === turnId).length;
  assert.ok(effects <= 1, `the turn ran ${effects} times`);
  if ((await session.turn(turnId)).turn?.state === 'completed') {
    assert.equal(effects, 1);
    assert.deepEqual((await session.texts()).slice(-4), ['before', 'decision accept', 'after', 'next']);
  }
  const { replies } = await session.output();
  assert.equal(new Set(replies.map(({ seq }) => seq)).size, replies.length, 'a reply number was given twice');
  const { turns } = await session.turns();
  assert.equal(new Set(turns.map(({ number }) => number)).size, turns.length, 'a turn number was given twice');
  assert.equal(turns.at(-1)?.text, 'say next');
}

async function checkVoid({ session, turnId, ...subject }: Subject): Promise<void> {
  await makeReady({ session, turnId, ...subject });
  assert.equal((await session.void(turnId)).turn.state, 'void');
  await assert.rejects(session.send('say never', turnId), { code: 'agent_turn_void' });
  assert.equal((await session.run('say next')).state, 'completed');
  assert.deepEqual(await session.texts(), ['next']);
}

/** Restarts the daemon as in a VM that has no session yet. */
async function forget(agents: AgentDaemon): Promise<void> {
  await agents.daemon.stop('SIGKILL');
  await agents.endBridges();
  for (const name of ['run/agents', 'run/agent-run', 'state/agent-sessions'])
    await rm(join(agents.daemon.folder, name), { recursive: true, force: true });
  await agents.daemon.start();
}

const waiting = async (agents: AgentDaemon): Promise<TestSession> => {
  const session = await agents.session();
  const { turn } = await session.send('say kept\nask it');
  await session.reaches(turn.turnId, 'waiting');
  return session;
};

const SCENARIOS: readonly Scenario[] = [
  ...(['daemon', 'bridge'] as const).flatMap((role): Scenario[] => [
    {
      title: 'creating a session',
      role,
      atLeast: role === 'daemon' ? 9 : 6,
      arrange: async (agents) => {
        if (role === 'daemon') await forget(agents);
        return new TestSession(agents, newSessionId());
      },
      act: ({ agents, session }) => agents.start(session.id),
      check: checkTurn,
    },
    {
      title: 'recovering a session',
      role,
      atLeast: role === 'daemon' ? 7 : 5,
      arrange: async (agents) => killed(await agents.session()),
      act: async ({ session }) => assert.equal((await session.recover()).outcome, 'ready'),
      check: checkTurn,
    },
  ]),
  {
    title: 'running a turn',
    role: 'bridge',
    atLeast: 12,
    arrange: (agents) => agents.session(),
    act: runAsking,
    check: checkTurn,
  },
  {
    title: 'interrupting a turn',
    role: 'bridge',
    atLeast: 7,
    arrange: (agents) => agents.session(),
    act: async ({ session, turnId }) => {
      await session.send('hang', turnId);
      await session.interrupt();
      await session.reaches(turnId, ...FINAL);
    },
    check: async (subject) => {
      await makeReady(subject);
      // The response to the message, or to the interrupt, was lost.
      if ((await subject.session.turn(subject.turnId)).turn !== null) {
        await subject.session.interrupt().catch(() => undefined);
        await subject.session.reaches(subject.turnId, ...FINAL);
      }
      assert.notEqual((await subject.session.turn(subject.turnId)).turn?.state, 'completed');
      assert.equal((await subject.session.run('say next')).state, 'completed');
    },
  },
  {
    title: 'settling a turn whose bridge was killed',
    role: 'daemon',
    atLeast: 3,
    arrange: waiting,
    act: async ({ session }) => killed(session),
    check: async (subject) => {
      const { session } = subject;
      await makeReady(subject);
      const [failed] = (await session.get()).recentTurns;
      assert.deepEqual([failed?.state, failed?.reason], ['failed', 'bridge_ended']);
      assert.deepEqual(await session.texts(), ['kept']);
      await checkTurn(subject);
    },
  },
  {
    title: 'voiding a turn of a live bridge',
    role: 'bridge',
    atLeast: 1,
    arrange: (agents) => agents.session(),
    act: ({ session, turnId }) => session.void(turnId),
    check: checkVoid,
  },
  {
    title: 'voiding a turn of a stopped bridge',
    role: 'daemon',
    atLeast: 1,
    arrange: async (agents) => killed(await agents.session()),
    act: ({ session, turnId }) => session.void(turnId),
    check: checkVoid,
  },
  {
    title: 'storing a bridge program',
    role: 'daemon',
    atLeast: 2,
    arrange: (agents) => agents.session(),
    act: ({ agents }) => agents.put(6),
    check: async ({ agents }) => {
      const session = await agents.session({ version: 6 });
      const { turn } = await session.send('say stored', newTurn(), false);
      await session.reaches(turn.turnId, 'completed');
    },
  },
];

for (const { title, role, atLeast, arrange, act, check } of SCENARIOS) {
  test(`${title} survives a crash of the ${role} at each file change, and a full disk`, async (t) => {
    const orders = await mkdtemp(join(folder, 'orders-'));
    const flag = `--import=${pathToFileURL(hook).href}?${encodeURIComponent(orders)}`;
    const agents = await AgentDaemon.start(t, {}, [flag]);
    await agents.put();
    let crashed = 0;
    const crash = async (at: number, moment: CrashOrder['moment']): Promise<string[]> => {
      const id = newTurn();
      const subject = { agents, session: await arrange(agents), turnId: newTurn() };
      await writeFile(join(orders, 'order.json'), JSON.stringify({ id, role, at, moment } satisfies CrashOrder));
      await act(subject).catch((error: unknown) => {
        if (at === 0) throw error;
      });
      const read = (): Promise<string> => readFile(join(orders, `${id}.log`), 'utf8').catch(() => '');
      const changesOf = async (): Promise<string[]> => (await read()).split('\n').filter(Boolean);
      let crashes = at > 0 && moment !== 'full';
      // A daemon that looks at its bridge less often makes fewer changes.
      if (role === 'daemon' && crashes) {
        await until('the daemon has crashed, or made fewer changes', async () => {
          crashes = !agents.daemon.isRunning;
          return crashes || (await changesOf()).length < at;
        });
        crashed += Number(crashes);
      }
      await rm(join(orders, 'order.json'));
      const made = await changesOf();
      // No later daemon would find a bridge that is not on record.
      if (crashes && made.at(-1) === `write ${subject.session.id}.sock.json.new`)
        await until('no bridge is left', async () => !(await isNamed(subject.session.id)));
      if (!agents.daemon.isRunning) await agents.daemon.start();
      if (crashes) assert.equal(made.length, at, made.join(', '));
      await check(subject);
      // A live one could be stopped to make room for another, and change files meanwhile.
      await agents.endBridges();
      return made;
    };
    // The first run makes folders that the others find.
    await crash(0, 'after');
    const changes = await crash(0, 'after');
    t.diagnostic(changes.join(', '));
    assert.ok(changes.length >= atLeast, changes.join(', '));
    for (const [index, change] of sampleOf([...changes.entries()], 3)) {
      const moments = change.startsWith('write') ? (['torn', 'full', 'after'] as const) : (['after'] as const);
      for (const moment of moments)
        await t.test(`${moment} ${index + 1}: ${change}`, () => crash(index + 1, moment).then(() => undefined));
    }
    assert.ok(role === 'bridge' || crashed > 0, 'the daemon never crashed');
  });
}
