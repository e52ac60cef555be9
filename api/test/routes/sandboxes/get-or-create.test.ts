// Creates with `getOrCreate`, with the real durable work and a stand-in host.
import assert from 'node:assert/strict';
import { after, afterEach, before, test } from 'node:test';
import { sql } from 'kysely';
import { wakeSandboxOfKey } from '../../../src/services/sandboxes/wake-of-key.ts';
import type { SandboxRow } from '../../../src/store/database/schema.ts';
import { startApi, type Answer, type CallOptions, type TestApi, type TestOrg } from '../../world/api.ts';
import { settled } from '../../world/settled.ts';
import { untilTrue } from '../../../../os/test/until.ts';

let api: TestApi;
before(async () => {
  api = await startApi({ durable: true });
});
after(() => api.close());
afterEach(() => api.host.calm());

const ensure = (
  key: string,
  body: object = {},
  { org = api, ...options }: Partial<CallOptions> & { org?: TestOrg } = {},
): Promise<Answer> =>
  api.call('POST', `/v1/orgs/${org.orgId}/sandboxes`, {
    token: org.token,
    body: { agent: 'agent_one', projectId: org.projectId, getOrCreate: { key }, ...body },
    ...options,
  });
const move = (id: string, verb: 'sleep' | 'wake' | 'destroy'): Promise<Answer> =>
  settled(api, () => api.call('POST', `/v1/sandboxes/${id}/${verb}`));
const rowOf = (id: string): Promise<SandboxRow> =>
  api.db.selectFrom('sandbox').selectAll().where('id', '=', id).executeTakeFirstOrThrow();
const isReplay = (answer: Answer): boolean => answer.headers.get('idempotent-replayed') === 'true';
const shown = ({ status, body }: Answer): unknown[] => [status, body.sandbox?.id, body.sandbox?.status];
const async = { headers: { prefer: 'respond-async' } };

test('the first request of a key creates, the next returns the same sandbox, marked as a replay', async () => {
  const first = await settled(api, () => ensure('user-1', { endUserId: 'user-1', name: 'one', metadata: { a: 1 } }));
  assert.deepEqual([first.status, isReplay(first), first.body.sandbox.key], [201, false, 'user-1']);
  const second = await ensure('user-1', { name: 'other name', metadata: { b: 2 } });
  assert.deepEqual([second.status, isReplay(second)], [201, true]);
  assert.deepEqual({ ...second.body.sandbox, updatedAt: null }, { ...first.body.sandbox, updatedAt: null });
  assert.equal(api.host.made.get(first.body.sandbox.id), 1);
});

test('a stopped sandbox is woken, although its project does not wake on use', async () => {
  const { id } = (await settled(api, () => ensure('stopped'))).body.sandbox;
  await move(id, 'sleep');
  assert.deepEqual(shown(await settled(api, () => ensure('stopped'))), [201, id, 'ready']);
  assert.equal(api.host.woken.get(id), 1);
  const feed = await api.db.selectFrom('activity').selectAll().where('sandbox_id', '=', id).execute();
  const asked = feed.find(({ kind }) => kind === 'sandbox_wake_requested');
  assert.deepEqual(asked?.details, { from: 'stopped', to: 'waking', getOrCreate: true });
});

test('with respond-async a stopped sandbox is returned waking, at once', async () => {
  const { id } = (await settled(api, () => ensure('async'))).body.sandbox;
  await move(id, 'sleep');
  api.host.wakeMs = 60_000;
  assert.deepEqual(shown(await ensure('async', {}, async)), [201, id, 'waking']);
  assert.deepEqual(shown(await ensure('async', {}, async)), [201, id, 'waking']);
  api.host.finish('wake');
  assert.deepEqual(shown(await settled(api, () => ensure('async'))), [201, id, 'ready']);
  assert.equal(api.host.woken.get(id), 1);
});

test('a sandbox that falls asleep is woken after its sleep, or 409 with Retry-After', async () => {
  const { id } = (await settled(api, () => ensure('falling'))).body.sandbox;
  api.host.sleepMs = 60_000;
  await api.call('POST', `/v1/sandboxes/${id}/sleep`, async);
  const refused = await ensure('falling', {}, async);
  assert.deepEqual([refused.status, refused.body.error.code], [409, 'sandbox_state_conflict']);
  assert.match(refused.body.error.message, /^cannot wake the sandbox sbx_\w+ of this key: it is still falling asleep/);
  assert.equal(refused.headers.get('retry-after'), '1');
  const held = settled(api, () => ensure('falling'));
  await untilTrue('the host sleeps', () => api.host.calls.some((call) => call.verb === 'sleep' && call.id === id));
  api.host.finish('sleep');
  assert.deepEqual(shown(await held), [201, id, 'ready']);
});

test('an awake sandbox is used by the request, so that it does not sleep at once', async () => {
  const { id } = (await settled(api, () => ensure('used'))).body.sandbox;
  await api.db
    .updateTable('sandbox')
    .set({ last_active_at: sql<Date>`now() - interval '10 minutes'` })
    .where('id', '=', id)
    .execute();
  const { lastActiveAt } = (await ensure('used')).body.sandbox;
  const { last_active_at: at, last_active_by: by } = await rowOf(id);
  assert.equal(by, 'create');
  assert.ok(at.getTime() > Date.parse(lastActiveAt));
});

test('a deleted sandbox gets a successor', async () => {
  const { id } = (await settled(api, () => ensure('deleted'))).body.sandbox;
  await move(id, 'destroy');
  const next = await settled(api, () => ensure('deleted', { agent: 'agent_two' }));
  assert.deepEqual([next.status, isReplay(next), next.body.sandbox.status], [201, false, 'ready']);
  assert.notEqual(next.body.sandbox.id, id);
  assert.equal((await rowOf(id)).key, 'deleted');
});

test('a sandbox that never ran is deleted for a successor', async () => {
  api.host.refuseCreates.push({ code: 'create_failed', message: 'no VM today' });
  const failed = (await settled(api, () => ensure('failed'))).body.sandbox;
  assert.equal(failed.status, 'failed');
  const next = await settled(api, () => ensure('failed'));
  assert.deepEqual([isReplay(next), next.body.sandbox.status], [false, 'ready']);
  await untilTrue('the failed one is deleted', async () => (await rowOf(failed.id)).status === 'deleted');
});

test('a caller that waited for the create of another gets its failure, not a sandbox of its own', async () => {
  const { id } = await api.makeSandbox('failed', { status_reason_code: 'create_failed' });
  const actor = {
    kind: 'api_key',
    id: 'key',
    userId: 'user',
    requestId: null,
    orgId: api.orgId,
    scopes: null,
  } as const;
  const answer = { respondAsync: false, signal: AbortSignal.timeout(1) };
  const found = await wakeSandboxOfKey(api.context, { ...actor, role: 'owner' }, id, answer);
  assert.deepEqual([found?.id, found?.status], [id, 'failed']);
});

test('a sandbox that died for good loses its key to a successor', async () => {
  const { id } = (await settled(api, () => ensure('died'))).body.sandbox;
  api.host.killVm(id, 'QEMU exited', { keeps: 'nothing', deathCode: 'qemu_crash' });
  await untilTrue('the sandbox fails', async () => (await rowOf(id)).status === 'failed');
  const next = await settled(api, () => ensure('died'));
  assert.deepEqual([isReplay(next), next.body.sandbox.status], [false, 'ready']);
  assert.deepEqual([(await rowOf(id)).key, (await rowOf(id)).status], [null, 'failed']);
});

test('a sandbox that may come back with its host keeps its key: 409 with the remedy', async () => {
  const { id } = await api.makeSandbox('failed', {
    key: 'lost',
    key_fields: JSON.stringify((await rowOf((await settled(api, () => ensure('shape'))).body.sandbox.id)).key_fields),
    status_reason_code: 'machine_lost',
    status_reason_message: 'its host no longer has it',
  });
  const { status, body } = await ensure('lost');
  assert.deepEqual([status, body.error.code], [409, 'sandbox_state_conflict']);
  assert.match(
    body.error.message,
    /its host no longer has it\. It may come back with its host; destroy it to get another/,
  );
  await move(id, 'destroy');
  assert.equal((await settled(api, () => ensure('lost'))).body.sandbox.status, 'ready');
});

test('a sandbox that failed with its disk is woken from it', async () => {
  const { id } = (await settled(api, () => ensure('disk'))).body.sandbox;
  api.host.killVm(id, 'QEMU exited');
  await untilTrue('the sandbox fails', async () => (await rowOf(id)).status === 'failed');
  assert.deepEqual(shown(await settled(api, () => ensure('disk'))), [201, id, 'ready']);
});

test('after a failed wake the sandbox is returned with the reason, and is not woken twice', async () => {
  const { id } = (await settled(api, () => ensure('no wake'))).body.sandbox;
  await move(id, 'sleep');
  api.host.refuseWakes.push({ code: 'wake_failed', message: 'no memory' });
  const answer = await settled(api, () => ensure('no wake'));
  assert.deepEqual(shown(answer), [201, id, 'stopped']);
  assert.equal(answer.body.sandbox.statusReason.code, 'wake_failed');
  assert.deepEqual(shown(await settled(api, () => ensure('no wake'))), [201, id, 'ready']);
});

test('other fields than those of the create are 409 sandbox_differs, which names each', async () => {
  const { id } = (await settled(api, () => ensure('differs', { machineSize: 'small', endUserId: 'u' }))).body.sandbox;
  const wished = {
    agent: 'agent_two',
    machineSize: 'large',
    endUserId: 'v',
    egress: { mode: 'none' },
    repository: 'acme/app',
    persistencePolicy: 'always_on',
  };
  const answer = await ensure('differs', wished);
  assert.deepEqual([answer.status, answer.body.error.code], [409, 'sandbox_differs']);
  assert.equal(answer.body.error.field, 'body.getOrCreate.key');
  const { message } = answer.body.error;
  assert.ok(message.startsWith(`body.getOrCreate.key belongs to the sandbox ${id}, which was created with other`));
  for (const part of [
    'agent is "agent_one", not "agent_two"',
    'machineSize is "small", not "large"',
    'persistencePolicy is "sleep_resume", not "always_on"',
    'repository is null, not "acme/app"',
    'egress is {"mode":"open","names":[],"ports":[],"ranges":[]}, not {"mode":"none",',
    'endUserId is "u", not "v"',
  ])
    assert.ok(message.includes(part), `${part} is missing in: ${message}`);
  assert.doesNotMatch(message, /branch|ttlSeconds|sshPublicKey|profile/);
  assert.equal((await rowOf(id)).agent, 'agent_one');
});

test('a later resize, egress policy, or default of the project makes no difference', async () => {
  const shape = { machineSize: 'small', egress: { mode: 'open' } };
  const { id } = (await settled(api, () => ensure('resized', shape))).body.sandbox;
  await api.call('POST', `/v1/sandboxes/${id}/resize`, { body: { vcpu: 2 } });
  await api.call('PUT', `/v1/sandboxes/${id}/egress`, { body: { mode: 'none' } });
  await api.db.updateTable('project').set({ default_profile: 'build-heavy' }).where('id', '=', api.projectId).execute();
  try {
    assert.equal((await ensure('resized', shape)).body.sandbox.id, id);
    assert.equal((await ensure('resized')).body.sandbox.id, id);
  } finally {
    await api.db.updateTable('project').set({ default_profile: null }).where('id', '=', api.projectId).execute();
  }
});

test('a key belongs to its project and org', async () => {
  const org = await api.makeOrg();
  const project = await api.call('POST', `/v1/orgs/${api.orgId}/projects`, { body: { name: 'other' } });
  const made = [
    await ensure('shared'),
    await ensure('shared', {}, { org }),
    await ensure('shared', { projectId: project.body.project.id }),
  ];
  assert.deepEqual(
    made.map(({ status, headers }) => [status, headers.get('idempotent-replayed')]),
    made.map(() => [201, null]),
  );
  assert.equal(new Set(made.map(({ body }) => body.sandbox.id)).size, 3);
});

test('a key of an API key without sandbox.wake is refused, and an Idempotency-Key with it', async () => {
  const token = await api.makeKey({ scopes: ['sandbox.create', 'sandbox.read'] });
  const refused = await ensure('scopes', {}, { token });
  assert.deepEqual([refused.status, refused.body.error.code], [403, 'permission_denied']);
  assert.match(refused.body.error.message, /the permission sandbox\.wake is required/);
  const both = await ensure('both', {}, { headers: { 'idempotency-key': 'k' } });
  assert.deepEqual([both.status, both.body.error.field], [400, 'body.getOrCreate']);
  for (const getOrCreate of [
    {},
    { key: '' },
    { key: 7 },
    { key: 'x'.repeat(513) },
    { key: 'x', other: 1 },
    'x',
    null,
  ]) {
    const { status, body } = await ensure('x', { getOrCreate });
    assert.deepEqual([status, body.error.code], [400, 'invalid_request'], JSON.stringify(getOrCreate));
  }
  const rows = await api.db.selectFrom('sandbox').select('id').where('key', 'in', ['scopes', 'both', 'x']).execute();
  assert.deepEqual(rows, []);
});

test('a refused create leaves the key free', async () => {
  await api.db.updateTable('subscription').set({ status: 'canceled' }).where('org_id', '=', api.orgId).execute();
  assert.equal((await ensure('no plan')).body.error.code, 'no_active_plan');
  await api.db.updateTable('subscription').set({ status: 'active' }).where('org_id', '=', api.orgId).execute();
  assert.equal((await settled(api, () => ensure('no plan', { agent: 'agent_two' }))).body.sandbox.status, 'ready');
});

test('ensures, sleeps and destroys of one key at once leave at most one live sandbox', async () => {
  const work: Promise<Answer>[] = [];
  for (let round = 0; round < 8; round += 1) {
    const one = await ensure('churn');
    work.push(...[1, 2, 3].map(() => ensure('churn')));
    const { id } = one.body.sandbox ?? {};
    if (id !== undefined) work.push(api.call('POST', `/v1/sandboxes/${id}/${round % 2 === 0 ? 'sleep' : 'destroy'}`));
  }
  for (const { status, body } of await Promise.all(work))
    assert.ok([200, 201].includes(status) || body.error.code === 'sandbox_state_conflict', JSON.stringify(body));
  const live = await api.db
    .selectFrom('sandbox')
    .select('id')
    .where('key', '=', 'churn')
    .where('status', 'not in', ['destroying', 'deleted'])
    .execute();
  assert.ok(live.length <= 1, `${live.length} live sandboxes`);
  const last = await settled(api, async () => {
    const answer = await ensure('churn');
    return answer.status === 409 ? await ensure('churn') : answer;
  });
  assert.equal(last.body.sandbox.status, 'ready');
});
