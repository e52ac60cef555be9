// Model keys at the host of an agent session: from its start on, and in force with each change. No
// durable work runs here that would repair what is missing.
import assert from 'node:assert/strict';
import { after, afterEach, before, test } from 'node:test';
import type { SandboxRow } from '../../../src/store/database/schema.ts';
import { startApi, type TestApi, type TestSession } from '../../world/api.ts';
import { ExecRefusal } from '../../world/guests/exec-refusal.ts';
import { AgentSessionUnderTest, assertRefused } from './agent-session.ts';

const SPEC = { vcpu: 1, memoryMib: 1_024, diskGib: 10, hostname: 'a', sshAuthorizedKeys: [] };

let api: TestApi;
let admin: TestSession;
before(async () => {
  api = await startApi({ durable: false });
  admin = await api.makeSession({ role: 'admin' });
});
after(() => api.close());
afterEach(() => {
  api.host.calm();
  api.agents.before = () => undefined;
});

async function makeProject(): Promise<string> {
  return (await api.call('POST', `/v1/orgs/${api.orgId}/projects`, { body: {} })).body.project.id;
}

/** Stores a key, or deletes it. */
async function setKey(projectId: string, text: string | null, agent = 'agent_one'): Promise<string | null> {
  const path = `/v1/orgs/${api.orgId}/projects/${projectId}/agent-credentials/${agent}`;
  const key = text && api.secret(`sk-${text}-0123456789`, 'a model key');
  const { status } = await (key === null
    ? api.call('DELETE', path, { token: admin.token })
    : api.call('PUT', path, { token: admin.token, body: { apiKey: key } }));
  assert.equal(status, 200);
  return key;
}

async function makeVm(projectId: string): Promise<SandboxRow> {
  const sandbox = await api.makeSandbox('ready', { project_id: projectId });
  api.host.addVm(sandbox.id, sandbox.epoch, SPEC);
  return sandbox;
}
const keyAt = (id: string) => api.host.modelAccess.get(id)?.agents.agent_one?.key;
const sessionsOf = (sandbox: SandboxRow) =>
  api.db.selectFrom('agent_session').select('bridge_state').where('sandbox_id', '=', sandbox.id).execute();

/** The starts that guests receive, with the key that their host has then. */
function watchStarts(): unknown[] {
  const starts: unknown[] = [];
  api.agents.before = ({ verb, vmId, body }) => {
    if (verb === 'start') starts.push([body['mode'], body['gateway'], keyAt(vmId)]);
  };
  return starts;
}

test("a start has the project's key at the host first, and uses the gateway only with a key", async () => {
  const projectId = await makeProject();
  const sandbox = await makeVm(projectId);
  const starts = watchStarts();
  await setKey(projectId, 'other-agent', 'agent_two');
  await AgentSessionUnderTest.create(api, sandbox);
  assert.equal(api.host.modelAccess.has(sandbox.id), false, 'the host is not called without a key');

  const key = await setKey(projectId, 'the-key');
  api.host.modelAccess.delete(sandbox.id);
  const session = await AgentSessionUnderTest.create(api, sandbox);
  api.host.modelAccess.delete(sandbox.id);
  await api.db
    .updateTable('agent_session')
    .set({ bridge_state: 'stopped', updated_at: new Date(0) })
    .where('sandbox_id', '=', sandbox.id)
    .execute();
  assert.equal((await session.call('POST', '/recover')).status, 200);
  assert.deepEqual(starts, [
    ['create', false, undefined],
    ['create', true, key],
    ['recover', true, key],
  ]);
  await api.scanSecrets();
});

test('a start whose host does not take the key is refused and leaves no new session', async () => {
  const projectId = await makeProject();
  await setKey(projectId, 'not-taken');
  const sandbox = await makeVm(projectId);
  const starts = watchStarts();
  for (const [code, status, shown] of [
    ['agent_unsupported', 409, 'agent_not_supported'],
    ['vm_not_running', 503, 'sandbox_unreachable'],
    ['agent_models_unavailable', 503, 'host_unavailable'],
  ] as const) {
    api.host.refuseModelAccess = { code, message: 'no' };
    assertRefused(await api.call('POST', `/v1/sandboxes/${sandbox.id}/agent-sessions`), status, shown);
  }
  assert.deepEqual([await sessionsOf(sandbox), starts], [[], []]);

  api.host.refuseModelAccess = null;
  const session = await AgentSessionUnderTest.create(api, sandbox);
  api.host.refuseModelAccess = { code: 'vm_not_running', message: 'no' };
  assertRefused(await session.call('POST', '/recover'), 503, 'sandbox_unreachable');
  assert.deepEqual(await sessionsOf(sandbox), [{ bridge_state: 'ready' }]);
});

test('a refused create leaves no key in a VM without sessions, and keeps it in one with a session', async () => {
  const projectId = await makeProject();
  const key = await setKey(projectId, 'withdrawn');
  const [bare, used] = [await makeVm(projectId), await makeVm(projectId)];
  await AgentSessionUnderTest.create(api, used);
  const { agents, front } = api;
  for (const code of ['agent_not_installed', 'agent_session_limit']) {
    for (const isThrown of [true, false]) {
      front.agents = () => {
        if (isThrown) throw new ExecRefusal(code as 'agent_not_installed', 'no');
        return Promise.resolve({ outcome: 'refused', code, message: 'no', session: null });
      };
      for (const sandbox of [bare, used]) {
        const refused = await api.call('POST', `/v1/sandboxes/${sandbox.id}/agent-sessions`);
        assertRefused(refused, 409, code);
      }
      assert.deepEqual(api.host.modelAccess.get(bare.id)?.agents, { agent_one: null, agent_two: null });
      assert.equal(keyAt(used.id), key);
    }
  }
  front.agents = (call, gone) => agents.answer(call, gone);
  await AgentSessionUnderTest.create(api, bare);
  assert.equal(keyAt(bare.id), key);
});

test('a change of a key is in force with its response in all VMs of the project with sessions', async () => {
  const projectId = await makeProject();
  await setKey(projectId, 'first');
  const used = await Promise.all(Array.from({ length: 20 }, () => makeVm(projectId)));
  for (const sandbox of used) await AgentSessionUnderTest.create(api, sandbox);
  const without = await makeVm(projectId);
  const [asleep] = used;
  assert.ok(asleep);
  await api.db.updateTable('sandbox').set({ status: 'stopped' }).where('id', '=', asleep.id).execute();
  const elsewhere = await makeProject();
  const other = await makeVm(elsewhere);
  const otherKey = await setKey(elsewhere, 'elsewhere');
  await AgentSessionUnderTest.create(api, other);

  const awake = used.slice(1).map(({ id }) => id);
  const first = keyAt(asleep.id);
  const key = await setKey(projectId, 'second');
  assert.deepEqual(new Set(awake.map(keyAt)), new Set([key]));
  assert.deepEqual([keyAt(asleep.id), keyAt(without.id), keyAt(other.id)], [first, undefined, otherKey]);
  await setKey(projectId, null);
  assert.deepEqual(new Set(awake.map(keyAt)), new Set([undefined]));
  assert.ok(awake.every((id) => api.host.modelAccess.get(id)?.agents.agent_one === null));
  assert.equal(keyAt(other.id), otherKey);

  api.host.calls.length = 0;
  await setKey(projectId, null);
  assert.deepEqual(api.host.calls, [], 'deleting none calls no host');
});

test('a change is stored although a host does not take it', async () => {
  const projectId = await makeProject();
  const [first, second] = [await makeVm(projectId), await makeVm(projectId)];
  const before = await setKey(projectId, 'before');
  for (const sandbox of [first, second]) await AgentSessionUnderTest.create(api, sandbox);
  api.host.forgetVm(first.id);
  const key = await setKey(projectId, 'after');
  assert.deepEqual([keyAt(first.id), keyAt(second.id)], [before, key]);
  assert.match(api.logged(), /1 VMs lack the new model keys/);
});
