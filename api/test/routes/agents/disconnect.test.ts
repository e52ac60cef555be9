// Creates and recovers of agent sessions whose caller or host leaves before the response.
import assert from 'node:assert/strict';
import { after, before, beforeEach, test } from 'node:test';
import type { SandboxRow } from '../../../src/store/database/schema.ts';
import { startApi, type TestApi } from '../../world/api.ts';
import { type AgentCall } from '../../world/guests/exec-front.ts';
import { ExecRefusal } from '../../world/guests/exec-refusal.ts';
import { leaveDuring } from '../../world/leave.ts';
import { untilTrue } from '../../../../os/test/until.ts';
import { AgentSessionUnderTest, assertRefused } from './agent-session.ts';

let api: TestApi;
before(async () => {
  api = await startApi({ durable: false });
});
after(() => api.close());
beforeEach(() => {
  api.agents.before = () => undefined;
  api.agents.after = () => undefined;
});

/** Calls the path, and leaves once the guest has the start. `respond` lets the guest respond. */
async function leave(path: string, hook: 'before' | 'after'): Promise<{ respond: (refusal?: ExecRefusal) => void }> {
  const begun = Promise.withResolvers<void>();
  const response = Promise.withResolvers<void>();
  api.agents[hook] = async ({ verb }) => {
    if (verb !== 'start') return;
    begun.resolve();
    await response.promise;
  };
  await leaveDuring(api, path, () => begun.promise);
  return { respond: (refusal) => (refusal === undefined ? response.resolve() : response.reject(refusal)) };
}

const createPath = ({ id }: { id: string }): string => `/v1/sandboxes/${id}/agent-sessions`;

async function listed({ id }: { id: string }): Promise<{ id: string; bridgeState: string }[]> {
  return (await api.call('GET', `/v1/agent-sessions?sandboxId=${id}`)).body.sessions;
}

/** Ids of the sessions in the guest. */
async function inGuest({ id: vmId }: SandboxRow): Promise<string[]> {
  const call = { vmId, sessionId: '', verb: '', query: new URLSearchParams(), body: {} } as AgentCall;
  const { sessions } = (await api.agents.answer(call, new AbortController().signal)) as {
    sessions: { sessionId: string }[];
  };
  return sessions.map(({ sessionId }) => sessionId);
}

const kindsOf = async (session: AgentSessionUnderTest): Promise<string[]> =>
  (await session.events()).map(({ kind }) => kind);

test('a create whose caller disconnects completes: the session is listed, ready and recorded once', async () => {
  const sandbox = await api.makeSandbox('ready');
  const { respond } = await leave(createPath(sandbox), 'after');
  const [starting] = await listed(sandbox);
  assert.equal(starting?.bridgeState, 'starting');
  respond();
  await untilTrue('the session is ready', async () => (await listed(sandbox))[0]?.bridgeState === 'ready');

  const session = new AgentSessionUnderTest(api, sandbox.id, starting.id);
  await untilTrue('the create is recorded', async () => (await session.events()).length > 0);
  await session.turn('hello');
  const second = await AgentSessionUnderTest.create(api, sandbox);
  assert.deepEqual((await inGuest(sandbox)).toSorted(), [session.id, second.id].toSorted());
  assert.deepEqual(await kindsOf(session), ['agent_session_created', 'agent_message_sent']);
});

test('a recover whose caller disconnects completes, and is recorded once', async () => {
  const sandbox = await api.makeSandbox('ready');
  const session = await AgentSessionUnderTest.create(api, sandbox);
  session.guest.change({ bridge: 'stopped', bridgeReason: 'idle' });
  assert.equal((await session.get()).body.bridgeState, 'stopped');
  const { respond } = await leave(`/v1/agent-sessions/${session.id}/recover`, 'after');
  respond();
  const recovered = async (): Promise<boolean> => (await kindsOf(session)).includes('agent_session_recovered');
  await untilTrue('the recover is recorded', recovered);
  assert.deepEqual(
    (await listed(sandbox)).map(({ id, bridgeState }) => [id, bridgeState]),
    [[session.id, 'ready']],
  );
  assert.deepEqual(await kindsOf(session), [
    'agent_session_created',
    'agent_session_stopped',
    'agent_session_recovered',
  ]);
});

test('a create whose caller disconnects and that the guest refuses leaves no session', async () => {
  const sandbox = await api.makeSandbox('ready');
  const { respond } = await leave(createPath(sandbox), 'before');
  const second = api.call('POST', createPath(sandbox));
  await untilTrue('two creates are in flight', async () => (await listed(sandbox)).length === 2);
  respond(new ExecRefusal('agent_session_limit', 'no'));
  assertRefused(await second, 409, 'agent_session_limit');
  await untilTrue('no session is left', async () => (await listed(sandbox)).length === 0);
  assert.deepEqual(await inGuest(sandbox), []);
});

test('a session seen as ready stays ready when the response to its create is lost', async () => {
  const sandbox = await api.makeSandbox('ready');
  api.agents.after = async ({ verb, sessionId }) => {
    if (verb !== 'start') return;
    const seen = await api.call('GET', `/v1/agent-sessions/${sessionId}`);
    assert.equal(seen.body.bridgeState, 'ready');
    throw new ExecRefusal('guest_unreachable', 'no');
  };
  assertRefused(await api.call('POST', createPath(sandbox)), 503, 'sandbox_unreachable');
  api.agents.after = () => undefined;
  const [found] = await listed(sandbox);
  assert.equal(found?.bridgeState, 'ready');
  const session = new AgentSessionUnderTest(api, sandbox.id, found.id);
  assert.equal((await session.get()).body.bridgeState, 'ready');
  assert.equal((await session.call('POST', '/recover')).body.bridgeState, 'ready');
  await session.turn('hello');
  assert.deepEqual(await kindsOf(session), ['agent_session_created', 'agent_session_recovered', 'agent_message_sent']);
  const [created] = await session.events();
  assert.equal(created?.actor_kind, 'api_key');
});
