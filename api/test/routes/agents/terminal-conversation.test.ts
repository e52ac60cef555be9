// The conversation of a terminal's program: its operations, and rows of the turns of people.
import assert from 'node:assert/strict';
import { after, before, beforeEach, test } from 'node:test';
import { AgentTurns } from '../../../src/workers/agents/turns.ts';
import { startApi, type TestApi } from '../../world/api.ts';
import { ExecRefusal } from '../../world/guests/exec-refusal.ts';
import { requestWebSocket } from '../../world/websocket-client.ts';
import { AgentSessionUnderTest, assertRefused } from './agent-session.ts';

let api: TestApi;
before(async () => {
  api = await startApi({ durable: false });
});
after(() => api.close());
beforeEach(() => {
  api.agents.before = () => undefined;
  api.front.stream = () => (caller) => void caller.pipe(caller);
});

async function open(sandboxId: string): Promise<void> {
  const path = `/v1/sandboxes/${sandboxId}/terminal?agent=true&cols=80&rows=24`;
  const opened = await requestWebSocket(`${api.url}${path}`, { authorization: `Bearer ${api.token}` });
  assert.ok('socket' in opened, JSON.stringify(opened));
  opened.socket.terminate();
}

async function terminalIn(conversation: 'pending' | 'open' = 'open'): Promise<AgentSessionUnderTest> {
  const { id } = await api.makeSandbox('ready');
  await open(id);
  const [session] = (await api.call('GET', `/v1/agent-sessions?sandboxId=${id}`)).body.sessions;
  const terminal = new AgentSessionUnderTest(api, id, session.id);
  terminal.guest.change({ conversation });
  await terminal.get();
  return terminal;
}

/** Looks once at the sandboxes in which a turn may be active. */
async function watch(): Promise<void> {
  const { db, hosts, log } = api.context;
  const context = { db, hosts, log, stopping: new AbortController().signal };
  await new AgentTurns({ context, session: { isLeader: () => Promise.resolve(true) }, withTurns: true }).tick();
}

const OPERATIONS = ['messages', 'output', 'approvals', 'interruption', 'recovery'];

test('a terminal shows its operations once its program shows a conversation', async () => {
  const terminal = await terminalIn('pending');
  assert.deepEqual((await terminal.get()).body.communication, {
    ...{ status: 'starting', capabilities: ['output', 'recovery'] },
  });
  api.agents.before = ({ verb }) => {
    if (verb === 'messages') throw new ExecRefusal('agent_not_ready', 'no');
  };
  assertRefused(await terminal.send('too early'), 503, 'agent_bridge_not_ready');
  assert.deepEqual((await terminal.get()).body.recentTurns, []);
  api.agents.before = () => undefined;

  terminal.guest.change({ conversation: 'open' });
  assert.deepEqual((await terminal.get()).body.communication, { status: 'available', capabilities: OPERATIONS });
  const turnId = await terminal.turn('from the API');
  terminal.guest.reply('a reply');
  terminal.guest.ask();
  const waiting = (await terminal.get()).body;
  assert.deepEqual([waiting.turnId, waiting.needsYou, waiting.communication.status], [turnId, true, 'needs_input']);
  assert.equal((await terminal.answer(waiting.pendingInput.requestId)).status, 200);
  assert.equal((await terminal.call('POST', '/interrupt')).status, 200);
  assert.deepEqual(
    (await terminal.output()).body.messages.map(({ text }: { text: string }) => text),
    ['a reply'],
  );
  terminal.guest.end('canceled');
  terminal.guest.change({ bridge: 'stopped', bridgeReason: 'agent_ended' });
  assert.deepEqual((await terminal.get()).body.communication, {
    status: 'stopped',
    capabilities: ['output', 'recovery'],
  });
});

test('a recovery needs the saved conversation, and an opening does not', async () => {
  const terminal = await terminalIn();
  await terminal.turn('work');
  terminal.guest.end();
  const startsAs = async (act: () => Promise<unknown>): Promise<unknown> => {
    terminal.guest.change({ bridge: 'stopped', bridgeReason: 'agent_ended' });
    await terminal.get();
    await act();
    const { body } = api.agents.calls.findLast(({ verb }) => verb === 'start') ?? {};
    return [body?.['mode'], body?.['surface'], body?.['approvals']];
  };
  assert.deepEqual(await startsAs(() => open(terminal.sandboxId)), ['create', 'terminal', 'ask']);
  const recover = async (): Promise<void> => {
    const { status, body } = await terminal.call('POST', '/recover');
    assert.deepEqual([status, body.id, body.bridgeState], [200, terminal.id, 'ready']);
  };
  assert.deepEqual(await startsAs(recover), ['recover', 'terminal', 'ask']);
  api.agents.before = ({ verb }) => {
    if (verb === 'start') throw new ExecRefusal('agent_process_alive', 'no');
  };
  terminal.guest.change({ bridge: 'stopped', bridgeReason: 'agent_ended' });
  assertRefused(await terminal.call('POST', '/recover'), 409, 'agent_process_alive');
});

test('turns of people are listed with their states and replies, and leave no entries', async () => {
  const terminal = await terminalIn();
  const first = terminal.guest.type('one');
  terminal.guest.end();
  const second = terminal.guest.type('two');
  const { body } = await terminal.get();
  assert.deepEqual([body.turnId, body.turnState, body.communication.status], [second, 'running', 'busy']);
  assert.deepEqual(
    body.recentTurns.map(({ turnId, state }: { turnId: string; state: string }) => [turnId, state]),
    [
      [second, 'running'],
      [first, 'completed'],
    ],
  );
  terminal.guest.reply('said');
  terminal.guest.end();
  assert.equal((await terminal.get()).body.turnState, 'completed');
  assert.equal((await terminal.output()).body.messages[0].turnId, second);
  const { turns } = (await terminal.get('/turns')).body;
  assert.deepEqual(
    turns.map(({ turnId, text, author }: { turnId: string; text: string; author: unknown }) => [turnId, text, author]),
    [
      [first, 'one', null],
      [second, 'two', null],
    ],
  );
  const kinds = (await terminal.events()).map(({ kind }) => kind);
  assert.deepEqual(kinds, ['agent_session_created']);
});

test('a message while a person works is refused, and one after that is sent', async () => {
  const terminal = await terminalIn();
  terminal.guest.type('work');
  assertRefused(await terminal.send('no', 'key-00000001'), 409, 'agent_turn_active');
  terminal.guest.end();
  const turnId = await terminal.turn('yes', 'key-00000001');
  assert.deepEqual(
    terminal.guest.messages.map(({ text }) => text),
    ['work', 'yes'],
  );
  terminal.guest.end();
  await terminal.get();
  assert.deepEqual((await terminal.send('yes', 'key-00000001')).body, { turnId, state: 'completed', replayed: true });
});

test('a turn of a person that nobody polls is recorded by the watch, and counts as use', async () => {
  const terminal = await terminalIn();
  const turnId = terminal.guest.type('work');
  const past = new Date(Date.now() - 60 * 60_000);
  await api.db.updateTable('sandbox').set({ last_active_at: past }).where('id', '=', terminal.sandboxId).execute();
  await watch();
  assert.equal((await terminal.turnRow(turnId))?.state, 'running');
  const row = api.db.selectFrom('sandbox').select('last_active_at').where('id', '=', terminal.sandboxId);
  assert.ok((await row.executeTakeFirstOrThrow()).last_active_at > past);
  terminal.guest.end();
  await watch();
  assert.equal((await terminal.turnRow(turnId))?.state, 'completed');
});

test('a person answers by the API, and entries about approvals stay one a minute', async () => {
  const terminal = await terminalIn();
  for (let at = 0; at < 3; at += 1) {
    terminal.guest.type('work');
    terminal.guest.ask();
    const { pendingInput } = (await terminal.get()).body;
    assert.equal(pendingInput.turnId, terminal.guest.view.turn?.turnId);
    terminal.guest.end();
    await terminal.get();
  }
  const kinds = (await terminal.events()).map(({ kind }) => kind);
  assert.deepEqual(kinds, ['agent_session_created', 'agent_prompt_requested']);
});

test('a hostile guest adds no rows for unmarked turns, and none to managed sessions', async () => {
  const terminal = await terminalIn();
  const typed = terminal.guest.type('work');
  terminal.guest.change({ turn: { ...terminal.guest.view.turn!, isPersons: undefined } });
  terminal.guest.turns.clear();
  await terminal.get();
  assert.equal(await terminal.turnRow(typed), undefined);

  const managed = await AgentSessionUnderTest.create(api);
  const other = managed.guest.type('work');
  managed.guest.change({ conversation: 'open' });
  const { body } = await managed.get();
  assert.deepEqual([body.turnId, await managed.turnRow(other)], [null, undefined]);
  assert.ok(body.communication.capabilities.includes('recovery'));
});

test('the rows of a terminal stay within those kept of a session', async () => {
  const terminal = await terminalIn();
  const rows = Array.from({ length: 1_000 }, (_none, at) => ({
    ...{ id: `trn_${'a'.repeat(20)}${String.fromCharCode(97 + (at % 26))}${at}`, session_id: terminal.id },
    ...{ sandbox_id: terminal.sandboxId, caller_kind: 'terminal', caller_id: '', caller_user_id: '' },
    ...{ text_hmac: Buffer.alloc(0), state: 'completed' as const, ended_at: new Date(), created_at: new Date(at) },
  }));
  await api.db.insertInto('agent_turn').values(rows).execute();
  const newest = terminal.guest.type('work');
  await terminal.get();
  const kept = await api.db.selectFrom('agent_turn').select('id').where('session_id', '=', terminal.id).execute();
  assert.equal(kept.length, 1_000);
  assert.ok(kept.some(({ id }) => id === newest));
});
