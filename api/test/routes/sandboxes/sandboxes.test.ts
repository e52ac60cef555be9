// Sandboxes over HTTP, with the real durable work and a stand-in host.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { MACHINE_SIZES } from '@berth/contract/sandboxes/machine-sizes.ts';
import { startApi, type Answer, type TestApi } from '../../world/api.ts';
import { settled } from '../../world/settled.ts';
import { untilTrue } from '../../../../os/test/until.ts';

let api: TestApi;
before(async () => {
  api = await startApi({ durable: true });
});
after(() => api.close());

const create = (body: object = {}, headers: Record<string, string> = {}): Promise<Answer> =>
  api.call('POST', `/v1/orgs/${api.orgId}/sandboxes`, {
    body: { agent: 'agent_one', projectId: api.projectId, ...body },
    headers,
  });
const get = (id: string): Promise<Answer> => api.call('GET', `/v1/sandboxes/${id}`);
const destroy = (id: string, headers: Record<string, string> = {}): Promise<Answer> =>
  api.call('POST', `/v1/sandboxes/${id}/destroy`, { headers });
const list = (query = ''): Promise<Answer> => api.call('GET', `/v1/orgs/${api.orgId}/sandboxes${query}`);

test('a create returns 201 with the sandbox ready and every field of the spec', async () => {
  const { status, body } = await settled(api, () =>
    create({ name: 'mine', endUserId: 'user 42', metadata: { plan: 'pro', seats: 3, trial: false } }),
  );
  assert.equal(status, 201);
  const { sandbox } = body;
  assert.equal(sandbox.status, 'ready');
  assert.equal(sandbox.name, 'mine');
  assert.equal(sandbox.endUserId, 'user 42');
  assert.deepEqual(sandbox.metadata, { plan: 'pro', seats: 3, trial: false });
  assert.equal(sandbox.sandbox_profile, 'auto');
  assert.equal(sandbox.allocated_vcpu, 1);
  assert.equal(sandbox.allocated_memory_gb, 1);
  assert.equal(sandbox.allocated_disk_gb, 10);
  assert.equal('pendingAllocation' in sandbox, false);
  assert.deepEqual(api.host.alive(sandbox.id), [sandbox.id]);
  assert.deepEqual((await get(sandbox.id)).body, body);
});

test('a create without a name gets a generated one', async () => {
  const { body } = await create();
  assert.match(body.sandbox.name, /^sandbox-[a-z2-7]{8}$/);
});

test('a create with respond-async returns provisioning at once and confirms the preference', async () => {
  api.host.createMs = 300;
  try {
    const { status, headers, body } = await create({}, { prefer: 'return=representation, Respond-Async' });
    assert.equal(status, 201);
    assert.equal(headers.get('preference-applied'), 'respond-async');
    assert.equal(body.sandbox.status, 'provisioning');
  } finally {
    api.host.createMs = 0;
  }
});

test('a create whose VM takes longer than the wait returns 201 with the true status', async () => {
  api.host.createMs = 60_000;
  try {
    const { status, headers, body } = await create();
    assert.equal(status, 201);
    assert.equal(headers.get('preference-applied'), null);
    assert.equal(body.sandbox.status, 'provisioning');
  } finally {
    api.host.createMs = 0;
    api.host.finish('PUT');
  }
});

test('a create that the host refuses returns 201 with status failed and the reason', async () => {
  api.host.refuseCreates.push({ code: 'create_failed', message: 'the guest did not answer' });
  const { body } = await settled(api, () => create());
  assert.equal(body.sandbox.status, 'failed');
  assert.match(body.sandbox.statusReason.message, /^its VM did not start\. Create another sandbox/);
});

test("machineSize overrides the profile's size, and alone it implies the profile", async () => {
  const both = await create({ profile: 'auto', machineSize: 'medium' });
  assert.equal(both.body.sandbox.sandbox_profile, 'auto');
  assert.equal(both.body.sandbox.allocated_memory_gb, MACHINE_SIZES.medium.memoryGb);
  const lone = await create({ machineSize: 'large' });
  assert.equal(lone.body.sandbox.sandbox_profile, 'build-heavy');
  assert.equal(lone.body.sandbox.allocated_vcpu, MACHINE_SIZES.large.vcpu);
});

test("a sandbox takes missing fields from its project's defaults", async () => {
  const made = await api.call('POST', `/v1/orgs/${api.orgId}/projects`, {
    body: { name: 'with defaults', defaultProfile: 'agent-standard', defaultPersistencePolicy: 'always_on' },
  });
  const { body } = await create({ projectId: made.body.project.id });
  assert.equal(body.sandbox.sandbox_profile, 'agent-standard');
  assert.equal(body.sandbox.allocated_vcpu, MACHINE_SIZES.medium.vcpu);
  assert.equal(body.sandbox.persistencePolicy, 'always_on');
  const own = await create({ projectId: made.body.project.id, persistencePolicy: 'sleep_resume', profile: 'auto' });
  assert.equal(own.body.sandbox.persistencePolicy, 'sleep_resume');
  assert.equal(own.body.sandbox.sandbox_profile, 'auto');
});

test('the list is newest first, filters by the exact endUserId and omits deleted sandboxes', async () => {
  const first = (await create({ endUserId: 'tenant/ü%1' })).body.sandbox.id;
  const second = (await create({ endUserId: 'tenant/ü%1' })).body.sandbox.id;
  const third = (await create({ endUserId: 'tenant/ü%1' })).body.sandbox.id;
  await create({ endUserId: 'tenant/ü%' });
  const query = `?endUserId=${encodeURIComponent('tenant/ü%1')}`;
  const ids = async (): Promise<string[]> =>
    (await list(query)).body.sandboxes.map((sandbox: { id: string }) => sandbox.id);
  assert.deepEqual(await ids(), [third, second, first]);
  await settled(api, () => destroy(second));
  assert.deepEqual(await ids(), [third, first]);
  const all = (await list()).body.sandboxes;
  assert.equal(
    all.some((sandbox: { status: string }) => sandbox.status === 'deleted'),
    false,
  );
  assert.ok(all.length > 3);
});

test('a list has no default limit', async () => {
  const other = await api.makeOrg();
  for (let index = 0; index < 120; index += 1)
    await api.makeSandbox('failed', { org_id: other.orgId, project_id: other.projectId });
  const { body } = await api.call('GET', `/v1/orgs/${other.orgId}/sandboxes`, { token: other.token });
  assert.equal(body.sandboxes.length, 120);
});

test('a destroy returns deleted with the VM gone; later reads and destroys return the same', async () => {
  const { id } = (await create()).body.sandbox;
  const first = await settled(api, () => destroy(id));
  assert.equal(first.status, 200);
  assert.equal(first.body.sandbox.status, 'deleted');
  assert.match(first.body.sandbox.deletedAt, /Z$/);
  assert.deepEqual(api.host.alive(id), []);
  assert.deepEqual((await get(id)).body, first.body);
  const second = await settled(api, () => destroy(id));
  assert.deepEqual(second.body, first.body);
});

test('two concurrent destroys start one step and return the same response', async () => {
  const { id } = (await create()).body.sandbox;
  const [one, other] = await Promise.all([settled(api, () => destroy(id)), settled(api, () => destroy(id))]);
  assert.deepEqual(one.body, other.body);
  assert.equal(api.host.calls.filter((made) => made.verb === 'DELETE' && made.id === id).length, 1);
});

test('a destroy during a create overtakes it', async () => {
  api.host.createMs = 5_000;
  try {
    const { id } = (await create({}, { prefer: 'respond-async' })).body.sandbox;
    const { body } = await settled(api, () => destroy(id));
    assert.equal(body.sandbox.status, 'deleted');
    assert.deepEqual(api.host.alive(id), []);
  } finally {
    api.host.createMs = 0;
  }
});

test('a destroy with respond-async returns at once', async () => {
  const { id } = (await create()).body.sandbox;
  const { headers, body } = await destroy(id, { prefer: 'respond-async' });
  assert.equal(headers.get('preference-applied'), 'respond-async');
  assert.ok(['destroying', 'deleted'].includes(body.sandbox.status));
  assert.equal((await settled(api, () => destroy(id))).body.sandbox.status, 'deleted');
});

test("a sandbox's life has its events in order and one closed usage interval with the endUserId", async () => {
  const { id } = (await settled(api, () => create({ endUserId: 'metered' }))).body.sandbox;
  await settled(api, () => destroy(id));
  const events = await api.db.selectFrom('activity').selectAll().where('sandbox_id', '=', id).orderBy('at').execute();
  assert.deepEqual(
    events.map((event) => event.kind),
    ['sandbox_created', 'sandbox_ready', 'sandbox_destroy_requested', 'sandbox_deleted'],
  );
  assert.deepEqual(
    events.map((event) => event.actor_kind),
    ['api_key', 'system', 'api_key', 'system'],
  );
  const intervals = await api.db.selectFrom('usage_interval').selectAll().where('sandbox_id', '=', id).execute();
  assert.equal(intervals.length, 1);
  assert.equal(intervals[0]?.end_user_id, 'metered');
  assert.doesNotMatch(intervals[0]?.during ?? '', /,\)$/);
});

test('a caller that disconnects during the wait does not stop the create', async () => {
  api.host.createMs = 60_000;
  try {
    const gone = new AbortController();
    const name = 'made after its caller left';
    const call = api.call('POST', `/v1/orgs/${api.orgId}/sandboxes`, {
      body: { agent: 'agent_two', projectId: api.projectId, name },
      signal: gone.signal,
    });
    while ((await api.db.selectFrom('sandbox').select('id').where('name', '=', name).executeTakeFirst()) === undefined)
      await new Promise((resolve) => setTimeout(resolve, 10));

    gone.abort();
    await assert.rejects(call, { name: 'AbortError' });
    const row = await api.db.selectFrom('sandbox').select('id').where('name', '=', name).executeTakeFirstOrThrow();
    await untilTrue('the create reached the host', () =>
      api.host.calls.some((made) => made.verb === 'PUT' && made.id === row.id),
    );
    api.host.finish('PUT');
    while ((await get(row.id)).body.sandbox.status !== 'ready') await new Promise((resolve) => setTimeout(resolve, 20));
  } finally {
    api.host.createMs = 0;
  }
});
