// Model keys of projects at the hosts of their sandboxes, with the real durable work and a stand-in
// host. The stand-in forgets keys after a wake and a restart, as a host daemon does.
import assert from 'node:assert/strict';
import { after, afterEach, before, test } from 'node:test';
import type { Agent } from '@berth/contract/sandboxes/fields.ts';
import { sql } from 'kysely';
import { SecretKey } from '../../../src/services/context/secret-key.ts';
import { readModelAccess } from '../../../src/services/agents/model-access.ts';
import { insertAgentSession } from '../../../src/store/agents/sessions.ts';
import { findSandbox } from '../../../src/store/sandboxes/sandboxes.ts';
import { listAwakeOnHost } from '../../../src/store/sandboxes/lifecycle.ts';
import { ModelAccessRepair } from '../../../src/workers/hosts/model-access.ts';
import { startApi, type TestApi, type TestSession } from '../../world/api.ts';
import { settled } from '../../world/settled.ts';
import { untilTrue } from '../../../../os/test/until.ts';

const ENDPOINT = 'https://api.openai.test';

let api: TestApi;
let admin: TestSession;
before(async () => {
  api = await startApi({ durable: true });
  admin = await api.makeSession({ role: 'admin' });
});
after(() => api.close());
afterEach(() => api.host.calm());

async function makeProject(): Promise<string> {
  return (await api.call('POST', `/v1/orgs/${api.orgId}/projects`, { body: {} })).body.project.id;
}

/** Stores a key, or deletes it. Returns the key. */
async function setKey(projectId: string, agent: string, text: string | null): Promise<string | null> {
  const path = `/v1/orgs/${api.orgId}/projects/${projectId}/agent-credentials/${agent}`;
  const key = text && api.secret(`sk-${text}-of-${agent}-0123456789`, 'a model key');
  const { status } = await (key === null
    ? api.call('DELETE', path, { token: admin.token })
    : api.call('PUT', path, { token: admin.token, body: { apiKey: key } }));
  assert.equal(status, 200);
  return key;
}

async function create(projectId: string, agent = 'agent_one'): Promise<string> {
  const body = { agent, projectId };
  const made = await settled(api, () => api.call('POST', `/v1/orgs/${api.orgId}/sandboxes`, { body }));
  assert.equal(made.body.sandbox?.status, 'ready', JSON.stringify(made.body));
  return made.body.sandbox.id;
}
async function addSession(id: string): Promise<void> {
  const sandbox = await findSandbox(api.db, id);
  assert.ok(sandbox);
  await insertAgentSession(api.db, sandbox, { kind: 'session', id: 'ses_1', userId: api.userId });
}
/** Makes the VM ask for its keys, as the first request of a session at the gateway does. */
async function useModels(id: string): Promise<void> {
  await addSession(id);
  api.host.setVm(id, { modelVersion: null });
}
const atHost = (id: string) => api.host.modelAccess.get(id);
const has = (id: string, key: string | null, agent: 'agent_one' | 'agent_two' = 'agent_one'): Promise<void> =>
  untilTrue(`the host has ${key}`, () => {
    const access = atHost(id);
    return access !== undefined && (access.agents[agent]?.key ?? null) === key;
  });

test('a VM whose agent uses models gets the key of that agent and every change of it, and no other', async () => {
  const projectId = await makeProject();
  const key = await setKey(projectId, 'agent_one', 'first');
  const other = await setKey(projectId, 'agent_two', 'other-agent');
  await setKey(await makeProject(), 'agent_one', 'other-project');
  const [id, unused] = [await create(projectId), await create(projectId)];
  const second = await create(projectId, 'agent_two');
  for (const user of [id, second]) await useModels(user);
  await has(id, key);
  const { orgId, agents } = atHost(id) ?? {};
  assert.deepEqual([orgId, agents], [api.orgId, { agent_one: { endpoint: ENDPOINT, key }, agent_two: null }]);
  await has(second, other, 'agent_two');
  assert.equal(atHost(second)?.agents.agent_one, null);

  await has(id, await setKey(projectId, 'agent_one', 'second'));
  await has(second, await setKey(projectId, 'agent_two', 'third'), 'agent_two');
  await has(id, await setKey(projectId, 'agent_one', null));
  assert.deepEqual([atHost(id)?.agents.agent_two, atHost(second)?.agents.agent_one], [null, null]);
  const calls = api.host.calls.filter(({ verb, id: of }) => verb === 'model-access' && of === second);
  assert.equal(calls.length, 2, 'the key of another agent is no change');
  assert.equal(atHost(unused), undefined, 'a VM whose agents do not use models');
  await api.scanSecrets();
});

test('a VM gets its keys again after a wake and a restart of the host daemon, and only then', async () => {
  const projectId = await makeProject();
  const key = await setKey(projectId, 'agent_two', 'kept');
  const id = await create(projectId, 'agent_two');
  await useModels(id);
  await has(id, key, 'agent_two');
  for (const verb of ['sleep', 'wake']) await settled(api, () => api.call('POST', `/v1/sandboxes/${id}/${verb}`));
  await has(id, key, 'agent_two');
  await api.host.stop();
  await api.host.start();
  await has(id, key, 'agent_two');

  const { looks } = api.host;
  await untilTrue('the host was listed twice more', () => api.host.looks > looks + 2);
  assert.equal(api.host.calls.filter((call) => call.verb === 'model-access' && call.id === id).length, 3);
});

test('a VM loses its key with its last session', async () => {
  const projectId = await makeProject();
  const key = await setKey(projectId, 'agent_one', 'of-a-session');
  const id = await create(projectId);
  await useModels(id);
  await has(id, key);
  await api.db.deleteFrom('agent_session').where('sandbox_id', '=', id).execute();
  await has(id, null);
  await addSession(id);
  await has(id, key);
});

test('a VM loses its key two minutes after its last session stopped, and not while another is ready', async () => {
  const projectId = await makeProject();
  const key = await setKey(projectId, 'agent_one', 'of-stopped');
  const [id, busy] = [await create(projectId), await create(projectId)];
  for (const user of [id, busy]) await useModels(user);
  const stop = (age: string) =>
    api.db
      .updateTable('agent_session')
      .set({ bridge_state: 'stopped', updated_at: sql<Date>`now() - ${age}::interval` })
      .where('sandbox_id', 'in', [id, busy])
      .execute();
  for (const user of [id, busy]) await has(user, key);
  await stop('60 seconds');
  const recent = await findSandbox(api.db, id);
  assert.ok(recent);
  assert.equal((await readModelAccess(api.context, recent)).agents.agent_one?.key, key);
  await stop('120 seconds');
  await addSession(busy);
  await has(id, null);
  await has(busy, key);
});

test('a call that the host refuses is repeated until it succeeds', async () => {
  const projectId = await makeProject();
  const id = await create(projectId);
  await useModels(id);
  await has(id, null);
  api.host.refuseModelAccess = { code: 'agent_models_unavailable', message: 'the model gateway does not respond' };
  const key = await setKey(projectId, 'agent_one', 'late');
  const calls = () => api.host.calls.filter((call) => call.verb === 'model-access' && call.id === id).length;
  const before = calls();
  await untilTrue('the call was repeated', () => calls() > before + 1);
  assert.equal(atHost(id)?.agents.agent_one, null);
  api.host.refuseModelAccess = null;
  await has(id, key);
});

test('keys of endpoints off the list, and keys that do not open, give no access', async () => {
  const projectId = await makeProject();
  const make = async (agent: Agent) => {
    const { id } = await api.makeSandbox('ready', { project_id: projectId, agent });
    await addSession(id);
    return { id, org_id: api.orgId, project_id: projectId, agent };
  };
  const [one, two] = [await make('agent_one'), await make('agent_two')];
  const keys = [await setKey(projectId, 'agent_one', 'one'), await setKey(projectId, 'agent_two', 'two')];
  const whole = await readModelAccess(api.context, one);
  const other = await readModelAccess(api.context, two);
  assert.deepEqual([whole.agents.agent_one?.key, whole.agents.agent_two], [keys[0], null]);
  assert.deepEqual([other.agents.agent_one, other.agents.agent_two?.key], [null, keys[1]]);

  const settings = { modelEndpoints: { ...api.context.settings.modelEndpoints, openai: ['https://other.test'] } };
  const listed = await readModelAccess({ ...api.context, settings }, one);
  assert.equal(listed.agents.agent_one, null);
  assert.deepEqual((await readModelAccess({ ...api.context, settings }, two)).agents, other.agents);
  assert.notEqual(listed.version, whole.version, 'hosts get it anew after a change of the list');

  const secretKey = new SecretKey(Buffer.alloc(32, 'other'));
  const unopened = await readModelAccess({ ...api.context, secretKey }, one);
  assert.deepEqual(unopened.agents, { agent_one: null, agent_two: null });
  assert.equal(unopened.version, whole.version, 'hosts are not called in vain');
  assert.match(api.logged(), /cannot decrypt the model key of a project/);
});

test('a host gets eight calls at the same time, and the next list replaces those that wait', async () => {
  const projectId = await makeProject();
  await setKey(projectId, 'agent_one', 'many');
  const ids = new Set<string>();
  const spec = { vcpu: 1, memoryMib: 1_024, diskGib: 10, hostname: 'a', sshAuthorizedKeys: [] };
  for (let made = 0; made < 12; made += 1) {
    const { id, epoch } = await api.makeSandbox('ready', { project_id: projectId });
    api.host.addVm(id, epoch, spec);
    await addSession(id);
    ids.add(id);
  }
  const rows = (await listAwakeOnHost(api.db, api.host.hostId)).filter(({ id }) => ids.has(id));
  const vms = new Map(rows.map(({ id }) => [id, { id, modelVersion: null }]));
  const sent: string[] = [];
  const gate = Promise.withResolvers<void>();
  const client = { setModelAccess: (id: string) => (sent.push(id), gate.promise) };
  const stopping = new AbortController().signal;
  const repair = new ModelAccessRepair({ ...api.context, stopping } as never, client as never);
  await repair.repair(rows, vms as never);
  await untilTrue('eight calls are in flight', () => sent.length === 8);
  vms.delete(rows.findLast(({ id }) => !sent.includes(id))?.id ?? '');
  await repair.repair(rows, vms as never);
  assert.equal(sent.length, 8);
  gate.resolve();
  await untilTrue('the others follow', () => sent.length === 11);
  await repair.idle();
  assert.equal(new Set(sent).size, 11, 'none twice');
});
