// Agents that act without approval ask again when their project says so.
import assert from 'node:assert/strict';
import { after, before, beforeEach, test } from 'node:test';
import { AgentApprovals } from '../../../src/workers/agents/approvals.ts';
import { AgentSessionUnderTest } from '../../routes/agents/agent-session.ts';
import { startApi, type TestApi } from '../../world/api.ts';
import { ExecRefusal } from '../../world/guests/exec-refusal.ts';
import { untilTrue } from '../../../../os/test/until.ts';

let api: TestApi;
before(async () => {
  api = await startApi({ durable: false });
});
after(() => api.close());
beforeEach(async () => {
  api.agents.before = () => undefined;
  await api.db.updateTable('agent_session').set({ unattended: false }).execute();
});

const context = () => {
  const { db, hosts, log } = api.context;
  return { db, hosts, log, stopping: new AbortController().signal };
};
const worker = (): AgentApprovals =>
  new AgentApprovals({ context: context(), session: { isLeader: () => Promise.resolve(true) } });

/** Calls of the worker's next tick, by session. */
async function tick(approvals = worker()): Promise<string[]> {
  api.agents.calls.length = 0;
  await approvals.tick();
  await approvals.idle();
  return api.agents.calls.filter(({ verb }) => verb === 'approvals').map(({ sessionId }) => sessionId);
}

async function setApprovals(target: TestApi, agentApprovals: 'ask' | 'never'): Promise<void> {
  const path = `/v1/orgs/${target.orgId}/projects/${target.projectId}`;
  const { status, body } = await target.call('PATCH', path, { body: { agentApprovals } });
  assert.equal(status, 200, JSON.stringify(body));
}

/** A session that was started while its project let agents act without approval. */
async function unattended(target = api): Promise<AgentSessionUnderTest> {
  await setApprovals(target, 'never');
  const session = await AgentSessionUnderTest.create(target);
  assert.equal(session.guest.approvals, 'never');
  return session;
}

test('a running session asks again once its project is set back, and no other session is called', async () => {
  const attended = await AgentSessionUnderTest.create(api);
  const session = await unattended();
  await session.turn();
  assert.deepEqual(await tick(), []);
  await setApprovals(api, 'ask');
  assert.deepEqual(await tick(), [session.id]);
  assert.deepEqual([session.guest.approvals, attended.guest.approvals], ['ask', 'ask']);
  assert.deepEqual(await tick(), []);
  await setApprovals(api, 'never');
  assert.deepEqual(await tick(), []);
});

test('a running service brings a session back by itself', async () => {
  const running = await startApi({ durable: true });
  try {
    const session = await unattended(running);
    await setApprovals(running, 'ask');
    await untilTrue('the agent asks', () => session.guest.approvals === 'ask');
  } finally {
    await running.close();
  }
});

test('a sleeping sandbox is not called, and its session asks after the wake', async () => {
  const session = await unattended();
  await setApprovals(api, 'ask');
  const status = (to: 'stopped' | 'ready') =>
    api.db.updateTable('sandbox').set({ status: to }).where('id', '=', session.sandboxId).execute();
  await status('stopped');
  assert.deepEqual(await tick(), []);
  await status('ready');
  assert.deepEqual(await tick(), [session.id]);
});

test('a call that fails is repeated, and delays no other session', async () => {
  const [first, second] = [await unattended(), await unattended()];
  await setApprovals(api, 'ask');
  const stuck = Promise.withResolvers<void>();
  api.agents.before = ({ verb, sessionId }) =>
    verb === 'approvals' && sessionId === first.id ? stuck.promise : undefined;
  const approvals = worker();
  await approvals.tick();
  await untilTrue('the second session asks', () => second.guest.approvals === 'ask');
  await approvals.tick();
  assert.equal(first.guest.approvals, 'never');
  stuck.reject(new ExecRefusal('guest_unreachable', 'the guest did not respond'));
  await approvals.idle();
  api.agents.before = () => undefined;
  assert.deepEqual(await tick(approvals), [first.id]);
  assert.equal(first.guest.approvals, 'ask');
});

test('an org whose guests do not respond leaves room for another org of the host', async () => {
  const other = await api.makeOrg();
  const stuck = await Promise.all(Array.from({ length: 20 }, () => api.makeSandbox('ready')));
  await setApprovals(api, 'never');
  for (const sandbox of stuck) await AgentSessionUnderTest.create(api, sandbox);
  const foreign = await api.makeSandbox('ready', { org_id: other.orgId, project_id: other.projectId });
  const path = `/v1/orgs/${other.orgId}/projects/${other.projectId}`;
  const update = (agentApprovals: string) => api.call('PATCH', path, { token: other.token, body: { agentApprovals } });
  await update('never');
  const session = await AgentSessionUnderTest.create(api, foreign, { token: other.token });
  const held = Promise.withResolvers<void>();
  api.agents.before = ({ verb, vmId }) => (verb === 'approvals' && vmId !== foreign.id ? held.promise : undefined);
  await setApprovals(api, 'ask');
  const approvals = worker();
  api.agents.calls.length = 0;
  await approvals.tick();
  await untilTrue('the calls wait', () => api.agents.calls.filter(({ verb }) => verb === 'approvals').length === 8);
  await update('ask');
  await approvals.tick();
  await untilTrue('the other org is called', () => session.guest.approvals === 'ask');
  held.resolve();
  await approvals.idle();
});

test('a guest that cannot change a running session is called once; its recovery asks', async () => {
  const session = await unattended();
  await setApprovals(api, 'ask');
  api.agents.before = ({ verb }) => {
    if (verb === 'approvals') throw new ExecRefusal('agent_unsupported', 'unsupported');
  };
  assert.deepEqual(await tick(), [session.id]);
  assert.deepEqual(await tick(), []);
  session.guest.change({ bridge: 'stopped', bridgeReason: 'idle' });
  assert.equal((await session.call('POST', '/recover')).status, 200);
  assert.equal(session.guest.approvals, 'ask');
});

test('a recovery that leaves a ready session alone does not make it count as asking', async () => {
  const session = await unattended();
  await setApprovals(api, 'ask');
  assert.equal((await session.call('POST', '/recover')).status, 200);
  assert.equal(session.guest.approvals, 'never');
  assert.deepEqual(await tick(), [session.id]);
});
