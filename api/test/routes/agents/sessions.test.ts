// Agent sessions: create, recover, refresh, discover.
import assert from 'node:assert/strict';
import { after, before, beforeEach, test } from 'node:test';
import { lockSandbox } from '../../../src/store/sandboxes/sandboxes.ts';
import { transitionSandbox } from '../../../src/services/sandboxes/transition.ts';
import { newId } from '../../../src/store/database/ids.ts';
import { insertProject } from '../../../src/store/orgs/projects.ts';
import type { SandboxStatus } from '@berth/contract/sandboxes/state.ts';
import { startApi, type Answer, type TestApi } from '../../world/api.ts';
import { AgentSessionUnderTest, assertRefused } from './agent-session.ts';
import { ExecRefusal } from '../../world/guests/exec-refusal.ts';
import { leaveDuring } from '../../world/leave.ts';
import { untilTrue } from '../../../../os/test/until.ts';
import { makeAgentTokenRow, makeKeyRow, makePerson } from '../../world/people-rows.ts';

const SYSTEM = { kind: 'system', id: null, userId: null } as const;

let api: TestApi;
before(async () => {
  api = await startApi({ durable: false });
});
after(() => api.close());
beforeEach(() => {
  api.agents.before = () => undefined;
  api.agents.after = () => undefined;
});

const create = (): Promise<AgentSessionUnderTest> => AgentSessionUnderTest.create(api);

/** Takes the sandbox to a status as its durable steps do. */
async function move(id: string, to: SandboxStatus, woke?: { from: 'disk' | 'snapshot'; reason: null }): Promise<void> {
  const { outcome } = await api.db.transaction().execute(async (trx) => {
    const epoch = (await lockSandbox(trx, id))?.epoch ?? 0;
    const reason = to === 'failed' ? { code: 'host_lost', message: 'lost' } : undefined;
    return await transitionSandbox(trx, { sandboxId: id, epoch, to, actor: SYSTEM, reason, woke, newEpoch: true });
  });
  assert.equal(outcome, 'changed');
}

test('a wait without a revision ends at once if nothing is to wait for, otherwise at the next change', async () => {
  const session = await create();
  const headers = { prefer: 'wait=25' };
  const heldCalls = (): number => api.agents.calls.filter(({ query }) => query.has('waitMs')).length;
  const read = async (): Promise<Answer> => await session.get('', { headers });
  const assertAtOnce = async (state: string | null): Promise<void> => {
    const before = heldCalls();
    assert.equal((await read()).body.turnState, state);
    assert.equal(heldCalls(), before);
  };
  await assertAtOnce(null);
  await session.turn();
  const before = heldCalls();
  const held = read();
  await untilTrue('the guest holds the read', () => heldCalls() === before + 1);
  const requestId = session.guest.ask();
  assert.equal((await held).body.needsYou, true);
  await assertAtOnce('waiting');
  await session.answer(requestId);
  const end = read();
  await untilTrue('the guest holds the next read', () => heldCalls() === before + 2);
  session.guest.end();
  assert.equal((await end).body.turnState, 'completed');
  await assertAtOnce('completed');
});

test('a new session is ready, with the agent of its sandbox', async () => {
  const sandbox = await api.makeSandbox('ready', { agent: 'agent_two', end_user_id: 'user-1' });
  const { status, body } = await api.call('POST', `/v1/sandboxes/${sandbox.id}/agent-sessions`);
  assert.equal(status, 201, JSON.stringify(body));
  assert.match(body.id, /^ags_[a-z2-7]{24}$/);
  const { bridgeState, agent, agentLabel, surface, sandboxId, endUserId, needsYou, turnState } = body;
  assert.deepEqual(
    { bridgeState, agent, agentLabel, surface, sandboxId, endUserId, needsYou, turnState },
    {
      bridgeState: 'ready',
      agent: 'agent_two',
      agentLabel: 'Claude Code',
      surface: 'managed',
      sandboxId: sandbox.id,
      endUserId: 'user-1',
      needsYou: false,
      turnState: null,
    },
  );
  assert.deepEqual(body.communication, {
    status: 'available',
    capabilities: ['messages', 'output', 'approvals', 'interruption', 'recovery'],
  });
});

for (const [code, status, shown] of [
  ['agent_not_installed', 409, 'agent_not_installed'],
  ['agent_not_signed_in', 409, 'agent_not_signed_in'],
  ['agent_session_limit', 409, 'agent_session_limit'],
  ['agent_unsupported', 409, 'agent_not_supported'],
] as const) {
  test(`a start refused with ${code} is ${status} ${shown} and leaves no session`, async () => {
    const sandbox = await api.makeSandbox('ready');
    api.agents.before = () => {
      throw new ExecRefusal(code, 'no');
    };
    const refused = await api.call('POST', `/v1/sandboxes/${sandbox.id}/agent-sessions`);
    const { error } = assertRefused(refused, status, shown);
    if (code === 'agent_not_signed_in') assert.match(error.message, /agent-credentials.*sign-in/s);
    const rows = await api.db.selectFrom('agent_session').select('id').where('sandbox_id', '=', sandbox.id).execute();
    assert.deepEqual(rows, []);
  });
}

test('a start whose agent was not ready in time is 503; the stopped session can be recovered', async () => {
  const sandbox = await api.makeSandbox('ready');
  const { agents, front } = api;
  front.agents = async (call, gone) => {
    const result = (await agents.answer(call, gone)) as { session: object };
    agents.session(call.vmId, call.sessionId).change({ bridge: 'stopped', bridgeReason: 'not_ready' });
    const { view } = agents.session(call.vmId, call.sessionId);
    return { ...result, outcome: 'refused', code: 'agent_not_ready', message: 'late', session: view };
  };
  const refused = await api.call('POST', `/v1/sandboxes/${sandbox.id}/agent-sessions`);
  front.agents = (call, gone) => agents.answer(call, gone);
  const { error } = assertRefused(refused, 503, 'agent_bridge_not_ready');
  const id = /ags_\w+/.exec(error.message)?.[0] ?? '';
  const session = new AgentSessionUnderTest(api, sandbox.id, id);
  const stopped = (await session.get()).body;
  assert.deepEqual([stopped.bridgeState, stopped.bridgeReason], ['stopped', 'not_ready']);
  assert.deepEqual(stopped.communication, { status: 'stopped', capabilities: ['output', 'recovery'] });
  assert.equal((await session.call('POST', '/recover')).body.bridgeState, 'ready');
});

test('the capabilities of a session are the operations that succeed, and refusals name the operation', async () => {
  const session = await create();
  const { capabilities } = (await session.get()).body.communication;
  assert.deepEqual(capabilities, ['messages', 'output', 'approvals', 'interruption', 'recovery']);
  assert.equal((await session.call('POST', '/recover')).body.bridgeState, 'ready');
  await session.turn();
  const requestId = session.guest.ask();
  assert.equal((await session.answer(requestId)).status, 200);
  assert.equal((await session.call('POST', '/interrupt')).status, 200);
  assert.equal((await session.output()).status, 200);

  session.guest.end();
  session.guest.change({ bridge: 'stopped', bridgeReason: 'idle' });
  assert.deepEqual((await session.get()).body.communication.capabilities, ['output', 'recovery']);
  for (const [what, refused] of [
    ['send a message', await session.send('x')],
    ['answer an approval', await session.answer(requestId + 1)],
    ['interrupt a turn', await session.call('POST', '/interrupt')],
  ] as const) {
    const { error } = assertRefused(refused, 409, 'agent_bridge_stopped');
    assert.equal(error.message, `cannot ${what}: the session's bridge has stopped; recover the session ${session.id}`);
  }
  assert.equal((await session.output()).status, 200);
});

test('a host that does not respond leaves a stopped session that can be recovered', async () => {
  const sandbox = await api.makeSandbox('ready');
  api.agents.before = () => {
    throw new ExecRefusal('guest_unreachable', 'no');
  };
  assertRefused(await api.call('POST', `/v1/sandboxes/${sandbox.id}/agent-sessions`), 503, 'sandbox_unreachable');
  const { sessions } = (await api.call('GET', `/v1/agent-sessions?sandboxId=${sandbox.id}`)).body;
  assert.deepEqual(
    sessions.map(({ bridgeState }: { bridgeState: string }) => bridgeState),
    ['stopped'],
  );
  // The guest has never heard of it.
  api.agents.before = () => undefined;
  const session = new AgentSessionUnderTest(api, sandbox.id, sessions[0].id);
  assert.equal((await session.call('POST', '/recover')).body.bridgeState, 'ready');
  const { status } = await session.call('POST', '/messages', { body: { text: 'hello' } });
  assert.equal(status, 202);
});

test('recovery of a ready session changes nothing in the guest', async () => {
  const session = await create();
  const turnId = await session.turn();
  const before = session.guest.view;
  const recovered = await session.call('POST', '/recover');
  assert.deepEqual([recovered.body.turnId, recovered.body.turnState], [turnId, 'running']);
  assert.deepEqual(session.guest.view, before);
});

test('a session of a sleeping sandbox is shown as last known, and asks no host', async () => {
  const session = await create();
  await session.turn();
  await move(session.sandboxId, 'sleeping');
  await move(session.sandboxId, 'stopped');
  api.agents.calls.length = 0;
  const { body } = await session.get('', { headers: { prefer: 'wait=25' } });
  assert.deepEqual([body.bridgeState, body.turnState], ['suspended', 'running']);
  assert.deepEqual(body.communication, { status: 'asleep', capabilities: [] });
  assertRefused(await session.output(), 409, 'sandbox_state_conflict');
  assertRefused(await session.call('GET', '/turns'), 409, 'sandbox_state_conflict');
  assertRefused(await session.answer(1), 409, 'sandbox_state_conflict');
  assertRefused(await session.call('POST', '/interrupt'), 409, 'sandbox_state_conflict');
  assertRefused(await session.call('POST', '/recover'), 409, 'sandbox_state_conflict');
  assertRefused(await session.send('hello'), 409, 'sandbox_state_conflict');
  assert.deepEqual([api.agents.calls, api.steps], [[], []]);
});

test('the turn goes on after a sleep and a wake from the snapshot', async () => {
  const session = await create();
  const turnId = await session.turn();
  for (const to of ['sleeping', 'stopped', 'waking'] as const) await move(session.sandboxId, to);
  await move(session.sandboxId, 'ready', { from: 'snapshot', reason: null });
  session.guest.end();
  const { body } = await session.get();
  assert.deepEqual([body.bridgeState, body.turnId, body.turnState], ['ready', turnId, 'completed']);
});

test('a wake from the disk ends the turn as lost, and a late view of the earlier run is ignored', async () => {
  const session = await create();
  await session.turn();
  const { view } = session.guest;
  for (const to of ['sleeping', 'stopped', 'waking'] as const) await move(session.sandboxId, to);
  await move(session.sandboxId, 'ready', { from: 'disk', reason: null });
  const shown = (await api.call('GET', `/v1/agent-sessions?sandboxId=${session.sandboxId}`)).body.sessions[0];
  assert.deepEqual(
    [shown.bridgeState, shown.bridgeReason, shown.turnState, shown.turnReason],
    ['stopped', 'machine_lost', 'failed', 'machine_lost'],
  );
  const { recordView } = await import('../../../src/services/agents/records/views.ts');
  await recordView(api.db, session.id, { epoch: 1, view: { ...view, revision: view.revision + 5 } });
  const after = (await api.call('GET', `/v1/agent-sessions?sandboxId=${session.sandboxId}`)).body.sessions[0];
  assert.equal(after.bridgeState, 'stopped');
});

test('a lost VM ends the turn; a destroyed sandbox ends its sessions', async () => {
  const session = await create();
  await session.turn();
  await move(session.sandboxId, 'failed');
  assert.deepEqual((await session.get()).body.turnReason, 'machine_lost');
  await move(session.sandboxId, 'destroying');
  await move(session.sandboxId, 'deleted');
  const { body } = await session.get();
  assert.deepEqual([body.bridgeState, body.communication.status], ['gone', 'gone']);
  assertRefused(await session.send('hello'), 409, 'sandbox_state_conflict');
});

test('a personal token wakes a sandbox only if it grants that', async () => {
  const project = { id: newId('project'), org_id: api.orgId, name: 'w', use_case: 'internal', created_by: api.userId };
  await insertProject(api.db, { ...project, wake_on_use: true });
  const asleep = await api.makeSandbox('stopped', { project_id: project.id, wakes_from: 'snapshot' });
  const person = await makePerson(api.db, { [api.orgId]: 'member' });
  const path = `/v1/sandboxes/${asleep.id}/agent-sessions`;
  const { token } = await makeAgentTokenRow(api.db, { userId: person.userId, canApprove: false, canWake: false });
  assertRefused(await api.call('POST', path, { token }), 409, 'sandbox_state_conflict');
  assert.deepEqual(api.steps, []);

  const waking = await makeAgentTokenRow(api.db, { userId: person.userId, canApprove: false, canWake: true });
  const waits = api.call('POST', path, { token: waking.token });
  while (api.steps.length === 0) await new Promise((resolve) => setImmediate(resolve));
  await move(asleep.id, 'ready', { from: 'snapshot', reason: null });
  assert.equal((await waits).status, 201);
});

test('a create whose caller disconnects during the wake leaves no session', async () => {
  const project = { id: newId('project'), org_id: api.orgId, name: 'w', use_case: 'internal', created_by: api.userId };
  await insertProject(api.db, { ...project, wake_on_use: true });
  const asleep = await api.makeSandbox('stopped', { project_id: project.id, wakes_from: 'snapshot' });
  api.steps.length = 0;
  const path = `/v1/sandboxes/${asleep.id}/agent-sessions`;
  await leaveDuring(api, path, () => untilTrue('the wake has begun', () => api.steps.length > 0));
  await move(asleep.id, 'ready', { from: 'snapshot', reason: null });
  const { id } = await AgentSessionUnderTest.create(api, asleep);
  const { sessions } = (await api.call('GET', `/v1/agent-sessions?sandboxId=${asleep.id}`)).body;
  assert.deepEqual(
    sessions.map((session: { id: string }) => session.id),
    [id],
  );
});

test('permissions decide per operation', async () => {
  const session = await create();
  session.guest.begin(newId('agentTurn'), 'x', '');
  const requestId = session.guest.ask();
  const as = async (scopes: string[]): Promise<number[]> => {
    const { token } = await makeKeyRow(api.db, { orgId: api.orgId, createdBy: api.userId, scopes });
    const calls = [
      session.get('', { token }),
      session.send('a', undefined, { token }),
      session.answer(requestId, 'accept', { token }),
    ];
    return (await Promise.all(calls)).map(({ status }) => status);
  };
  assert.deepEqual(await as(['agent_session.read']), [200, 403, 403]);
  assert.deepEqual(await as(['agent_session.send']), [403, 409, 403]);
  assert.deepEqual(await as(['agent_session.approve']), [403, 403, 200]);
  assert.deepEqual(await as([]), [403, 403, 403]);
});

test('discovery lists the sessions of all orgs that a credential may read, newest first, by page', async () => {
  const person = await makePerson(api.db, { [api.orgId]: 'member' });
  const other = await api.makeOrg();
  const third = await api.makeOrg();
  await api.db
    .insertInto('membership')
    .values({ org_id: other.orgId, user_id: person.userId, role: 'viewer' })
    .execute();
  const inOrg = async ({ orgId, projectId, token }: typeof other): Promise<string> => {
    const sandbox = await api.makeSandbox('ready', { org_id: orgId, project_id: projectId });
    return (await AgentSessionUnderTest.create(api, sandbox, { token })).id;
  };
  const [mine, others, foreign] = [await inOrg(api), await inOrg(other), await inOrg(third)];
  const { token } = await makeAgentTokenRow(api.db, { userId: person.userId, canApprove: false, canWake: false });
  const list = (query: string, as = token): Promise<Answer> =>
    api.call('GET', `/v1/agent-sessions${query}`, { token: as });
  const idsOf = ({ body }: Answer): string[] => body.sessions.map(({ id }: { id: string }) => id);

  const walked: string[] = [];
  for (let after = ''; ;) {
    const page = await list(`?limit=1${after}`);
    walked.push(...idsOf(page));
    assert.equal(page.body.hasMore, page.body.nextCursor !== null);
    if (page.body.nextCursor === null) break;
    after = `&after=${page.body.nextCursor}`;
  }
  assert.deepEqual(walked.slice(0, 2), [others, mine]);
  assert.ok(!walked.includes(foreign));
  assert.deepEqual(idsOf(await list(`?orgId=${other.orgId}`)), [others]);
  assert.deepEqual(idsOf(await list(`?projectId=${other.projectId}`)), [others]);
  assert.deepEqual(idsOf(await list(`?orgId=${api.orgId}&projectId=${other.projectId}`)), []);
  assertRefused(await list(`?orgId=${third.orgId}`), 403, 'org_access_denied');
  assertRefused(await list(`?projectId=${third.projectId}`), 403, 'org_access_denied');
  assertRefused(await list(`?orgId=org_${'a'.repeat(24)}`), 404, 'org_not_found');
  assertRefused(await list(`?projectId=prj_${'a'.repeat(24)}`), 404, 'project_not_found');
  assertRefused(await list('?sandboxId=nonsense'), 404, 'sandbox_not_found');
  assertRefused(await list('?limit=101'), 400, 'invalid_request');
  assertRefused(await list('?after=nonsense'), 400, 'invalid_request');

  assert.ok(!idsOf(await list('', other.token)).includes(mine), 'a key sees its org alone');
  assertRefused(await list(`?orgId=${api.orgId}`, other.token), 403, 'org_access_denied');
  const scopeless = await makeKeyRow(api.db, { orgId: api.orgId, createdBy: api.userId, scopes: ['sandbox.read'] });
  assertRefused(await list('', scopeless.token), 403, 'permission_denied');
});

test('discovery asks no host, and filters by what waits for a person', async () => {
  const [waiting, quiet] = [await create(), await create()];
  await waiting.turn();
  waiting.guest.ask();
  await waiting.get();
  api.agents.calls.length = 0;
  const idsOf = async (query: string): Promise<string[]> =>
    (await api.call('GET', `/v1/agent-sessions${query}`)).body.sessions.map(({ id }: { id: string }) => id);
  const needing = await idsOf('?needsYou=true');
  assert.ok(needing.includes(waiting.id) && !needing.includes(quiet.id));
  const others = await idsOf('?needsYou=false');
  assert.ok(!others.includes(waiting.id) && others.includes(quiet.id));
  assert.deepEqual(api.agents.calls, []);
});

test('a held read returns when the session changes, and at once if it differs from the known revision', async () => {
  const session = await create();
  await session.turn();
  const { revision } = (await session.get()).body;
  const held = session.get(`?revision=${encodeURIComponent(revision)}`, { headers: { prefer: 'wait=25' } });
  let isHeld = false;
  while (!isHeld) {
    isHeld = api.agents.calls.some(({ sessionId, query }) => sessionId === session.id && query.has('waitMs'));
    await new Promise((resolve) => setImmediate(resolve));
  }
  session.guest.ask();
  const { body, headers } = await held;
  assert.equal(headers.get('preference-applied'), 'wait=25');
  assert.equal(body.needsYou, true);
  assert.notEqual(body.revision, revision);
  const changed = await session.get(`?revision=${encodeURIComponent(revision)}`, { headers: { prefer: 'wait=25' } });
  assert.equal(changed.body.revision, body.revision);
});
