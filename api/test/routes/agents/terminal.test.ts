// Terminals of agents: the session exists before its terminal, is listed, and has no operations.
import assert from 'node:assert/strict';
import { after, before, beforeEach, test } from 'node:test';
import type { AgentErrorCode } from '@berth/protocol/agent-errors.ts';
import { errorEnvelope } from '@berth/contract/route/errors.ts';
import { startApi, type Answer, type TestApi } from '../../world/api.ts';
import { ExecRefusal } from '../../world/guests/exec-refusal.ts';
import { requestWebSocket } from '../../world/websocket-client.ts';
import { AgentSessionUnderTest, assertRefused } from './agent-session.ts';

let api: TestApi;
/** Streams that the host was asked for. */
let targets: string[];
before(async () => {
  api = await startApi({ durable: false });
});
after(() => api.close());
beforeEach(() => {
  targets = [];
  api.agents.before = () => undefined;
  api.front.stream = (_vmId, target) => {
    targets.push(target);
    return (caller) => void caller.pipe(caller);
  };
});

interface Refused {
  status: number;
  code: string;
  message: string;
}

/** Opens the terminal and closes it; returns the refusal, or null. */
async function open(sandboxId: string, query = '?agent=true&cols=100&rows=30'): Promise<Refused | null> {
  const headers = { authorization: `Bearer ${api.token}` };
  const answer = await requestWebSocket(`${api.url}/v1/sandboxes/${sandboxId}/terminal${query}`, headers);
  if ('text' in answer) {
    const { code, message } = errorEnvelope.parse(JSON.parse(answer.text)).error;
    return { status: answer.status, code, message };
  }
  answer.socket.terminate();
  return null;
}

async function listed(sandboxId: string): Promise<Answer['body'][]> {
  return (await api.call('GET', `/v1/agent-sessions?sandboxId=${sandboxId}`)).body.sessions;
}

const startsOf = (sandboxId: string) =>
  api.agents.calls.filter(({ vmId, verb }) => vmId === sandboxId && verb === 'start').map(({ body }) => body);

async function terminalOf(sandboxId: string): Promise<AgentSessionUnderTest> {
  assert.equal(await open(sandboxId), null);
  const session = (await listed(sandboxId)).find(({ surface }) => surface === 'terminal');
  return new AgentSessionUnderTest(api, sandboxId, session.id);
}

test('the session of a terminal is stored before its program starts, and listed with its surface', async () => {
  const { id } = await api.makeSandbox('ready');
  let before: unknown[] = [];
  api.agents.before = async ({ verb }) => {
    if (verb === 'start') before = await listed(id);
  };
  assert.equal(await open(id), null);
  const [session] = await listed(id);
  const { surface, bridgeState, turnState, needsYou, communication } = session;
  assert.deepEqual(
    { surface, bridgeState, turnState, needsYou, communication },
    {
      ...{ surface: 'terminal', bridgeState: 'ready', turnState: null, needsYou: false },
      communication: { status: 'unsupported', capabilities: [] },
    },
  );
  assert.deepEqual(
    before.map((one) => [(one as typeof session).id, (one as typeof session).bridgeState]),
    [[session.id, 'starting']],
  );
  assert.deepEqual(targets, [`terminal?cols=100&rows=30&agent=${session.id}`]);
  assert.deepEqual(
    startsOf(id).map(({ surface, mode, approvals }) => [surface, mode, approvals]),
    [['terminal', 'create', 'ask']],
  );
  const events = await new AgentSessionUnderTest(api, id, session.id).events();
  assert.deepEqual(
    events.map(({ kind, details }) => [kind, details]),
    [['agent_session_created', { agent: 'agent_one', surface: 'terminal' }]],
  );
  const connected = api.db.selectFrom('activity').select('details').where('sandbox_id', '=', id);
  const row = await connected.where('kind', '=', 'sandbox_connected').executeTakeFirstOrThrow();
  assert.deepEqual(row.details, { terminal: true, agent: true });
});

test('everyone who opens the terminal of a sandbox gets one session, beside its managed ones', async () => {
  const sandbox = await api.makeSandbox('ready');
  const refusals = await Promise.all(Array.from({ length: 5 }, () => open(sandbox.id)));
  assert.deepEqual(refusals, [null, null, null, null, null]);
  const terminal = await terminalOf(sandbox.id);
  const started = startsOf(sandbox.id).length;
  assert.equal(await open(sandbox.id), null);
  assert.equal(startsOf(sandbox.id).length, started);
  assert.deepEqual(new Set(targets), new Set([`terminal?cols=100&rows=30&agent=${terminal.id}`]));

  const managed = await AgentSessionUnderTest.create(api, sandbox);
  assert.notEqual(managed.id, terminal.id);
  await managed.turn();
  assert.deepEqual(
    (await listed(sandbox.id)).map(({ id, surface }) => [id, surface]),
    [
      [managed.id, 'managed'],
      [terminal.id, 'terminal'],
    ],
  );
  assert.equal((await terminal.get()).body.turnId, null);
});

test('each operation on a terminal without a conversation is refused by name', async () => {
  const terminal = await terminalOf((await api.makeSandbox('ready')).id);
  const calls = api.agents.calls.length;
  for (const [what, refused] of [
    ['send a message', await terminal.send('hello', 'key-00000001')],
    ['read replies', await terminal.output()],
    ['read turns', await terminal.get('/turns')],
    ['answer an approval', await terminal.answer(1)],
    ['interrupt a turn', await terminal.call('POST', '/interrupt')],
    ['recover the session', await terminal.call('POST', '/recover')],
  ] as const) {
    const { error } = assertRefused(refused, 409, 'agent_operation_unsupported');
    assert.match(error.message, new RegExp(`^cannot ${what}: .*berth agent open ${terminal.sandboxId}`));
  }
  assert.equal(api.agents.calls.length, calls);
});

test('a program that has ended is started again, also if the guest did not report its end', async () => {
  const terminal = await terminalOf((await api.makeSandbox('ready')).id);
  const starts = startsOf(terminal.sandboxId).length;
  let isOver = true;
  api.front.stream = () => {
    if (isOver) throw new ExecRefusal('agent_bridge_stopped', 'no');
    return (caller) => void caller.pipe(caller);
  };
  api.agents.after = ({ verb }) => {
    if (verb === 'start') isOver = false;
  };
  assert.equal(await open(terminal.sandboxId), null);
  assert.equal(startsOf(terminal.sandboxId).length, starts + 1);

  api.agents.after = () => undefined;
  terminal.guest.change({ bridge: 'stopped', bridgeReason: 'agent_ended' });
  const { bridgeState, communication } = (await terminal.get()).body;
  assert.deepEqual([bridgeState, communication], ['stopped', { status: 'unsupported', capabilities: [] }]);
  assert.equal(await open(terminal.sandboxId), null);
  const after = (await terminal.get()).body;
  assert.deepEqual([after.id, after.bridgeState], [terminal.id, 'ready']);

  isOver = true;
  const refused = await open(terminal.sandboxId);
  assert.deepEqual([refused?.status, refused?.code], [409, 'agent_bridge_stopped']);
});

test('a guest that lost the files of the session gets it again', async () => {
  const terminal = await terminalOf((await api.makeSandbox('ready')).id);
  api.agents.forget(terminal.sandboxId, terminal.id);
  let isLost = true;
  api.front.stream = () => {
    if (isLost) throw new ExecRefusal('agent_session_missing', 'no');
    return (caller) => void caller.pipe(caller);
  };
  api.agents.after = ({ verb }) => {
    if (verb === 'start') isLost = false;
  };
  assert.equal(await open(terminal.sandboxId), null);
  api.agents.after = () => undefined;
});

for (const [code, status, shown] of [
  ['agent_not_installed', 409, 'agent_not_installed'],
  ['agent_session_limit', 409, 'agent_session_limit'],
  ['agent_process_alive', 409, 'agent_process_alive'],
  ['agent_unsupported', 409, 'agent_not_supported'],
] as const satisfies readonly (readonly [AgentErrorCode, number, string])[]) {
  test(`a terminal refused with ${code} is ${status} ${shown} and leaves no session`, async () => {
    const { id } = await api.makeSandbox('ready');
    api.agents.before = () => {
      throw new ExecRefusal(code, 'hostile text');
    };
    const refused = await open(id);
    assert.deepEqual([refused?.status, refused?.code], [status, shown]);
    assert.doesNotMatch(refused?.message ?? '', /hostile/);
    assert.deepEqual([await listed(id), targets], [[], []]);
  });
}

test('agent=true excludes a command, its options and pipes', async () => {
  const { id } = await api.makeSandbox('ready');
  for (const query of [
    'agent=true&command=true',
    'agent=true&command=true&tty=false',
    'agent=true&cwd=/tmp',
    'agent=1',
  ])
    assert.deepEqual((await open(id, `?${query}`))?.code, 'invalid_request', query);
  assert.deepEqual(await listed(id), []);
});

test('the terminal of a sleeping sandbox is refused without a wake, and leaves no session', async () => {
  const { id } = await api.makeSandbox('stopped');
  const refused = await open(id, '?agent=true&mayWake=false');
  assert.deepEqual([refused?.status, refused?.code], [409, 'sandbox_state_conflict']);
  assert.deepEqual(await listed(id), []);
});
