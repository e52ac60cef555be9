// Changes of name, labels and idle time over HTTP.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { sandboxStatus } from '@berth/contract/sandboxes/state.ts';
import { listPossibleSleepers } from '../../../src/store/sandboxes/activity-signals.ts';
import { startApi, type Answer, type TestApi } from '../../world/api.ts';

let api: TestApi;
before(async () => {
  api = await startApi({ durable: false });
});
after(() => api.close());

const update = (id: string, body: object): Promise<Answer> => api.call('PATCH', `/v1/sandboxes/${id}`, { body });

test('given fields change, absent ones stay, and metadata is replaced', async () => {
  const { id } = await api.makeSandbox('ready', { name: 'old', metadata: JSON.stringify({ a: 1, b: 2 }) });
  const before = (await api.call('GET', `/v1/sandboxes/${id}`)).body.sandbox;
  const named = await update(id, { name: 'new' });
  assert.equal(named.status, 200);
  assert.deepEqual(named.body.sandbox, { ...before, name: 'new', updatedAt: named.body.sandbox.updatedAt });
  const labelled = await update(id, { metadata: { c: true }, idleMinutes: 90 });
  const { name, metadata, idleMinutes } = labelled.body.sandbox;
  assert.deepEqual([name, metadata, idleMinutes], ['new', { c: true }, 90]);
  assert.equal((await update(id, { idleMinutes: null })).body.sandbox.idleMinutes, null);
  assert.deepEqual((await update(id, { metadata: {} })).body.sandbox.metadata, {});
});

test('the feed names the fields and a new name, not the labels; an equal value writes nothing', async () => {
  const { id } = await api.makeSandbox('ready', { name: 'old' });
  await update(id, { name: 'new', metadata: { secretish: 'value' } });
  await update(id, { name: 'new', metadata: { secretish: 'value' } });
  const events = await api.db.selectFrom('activity').selectAll().where('sandbox_id', '=', id).execute();
  assert.deepEqual(
    events.map(({ kind, details }) => [kind, details]),
    [['sandbox_updated', { fields: ['name', 'metadata'], name: 'new', formerName: 'old' }]],
  );
});

for (const status of sandboxStatus.options) {
  const over = status === 'destroying' || status === 'deleted';
  test(`an update of a ${status} sandbox ${over ? 'is 409' : 'succeeds and starts nothing'}`, async () => {
    const { id, epoch } = await api.makeSandbox(status);
    const answer = await update(id, { name: 'new' });
    if (over) assert.deepEqual([answer.status, answer.body.error.code], [409, 'sandbox_state_conflict']);
    else assert.deepEqual([answer.status, answer.body.sandbox.status], [200, status]);
    const row = await api.db.selectFrom('sandbox').selectAll().where('id', '=', id).executeTakeFirstOrThrow();
    assert.deepEqual([row.epoch, row.name === 'new'], [epoch, !over]);
    assert.deepEqual(api.steps, []);
  });
}

for (const [what, body, message] of [
  ['no field', {}, /must have at least one of name, metadata, idleMinutes/],
  ['an empty name', { name: '' }, /body\.name/],
  ['an unknown field', { name: 'x', size: 1 }, /size/],
  ['a negative idle time', { idleMinutes: -1 }, /body\.idleMinutes must be at least 0/],
  ['a fraction', { idleMinutes: 1.5 }, /body\.idleMinutes/],
  [
    '25 labels',
    { metadata: Object.fromEntries(Array.from({ length: 25 }, (_, i) => [`k${i}`, i])) },
    /at most 24 keys/,
  ],
] as const) {
  test(`an update with ${what} is 400 and changes nothing`, async () => {
    const { id } = await api.makeSandbox('ready', { name: 'kept' });
    const answer = await update(id, body);
    assert.deepEqual([answer.status, answer.body.error.code], [400, 'invalid_request']);
    assert.match(answer.body.error.message, message);
    assert.equal((await api.call('GET', `/v1/sandboxes/${id}`)).body.sandbox.name, 'kept');
  });
}

test("a sandbox's idle time has precedence over its project's", async () => {
  await api.db.updateTable('project').set({ default_idle_minutes: 0 }).where('id', '=', api.projectId).execute();
  const { id: never } = await api.makeSandbox('ready');
  const { id: own } = await api.makeSandbox('ready', { idle_minutes: 7 });
  const sleepers = (await listPossibleSleepers(api.db)).filter(({ id }) => id === never || id === own);
  assert.deepEqual(
    sleepers.map(({ id, idleMinutes }) => [id, idleMinutes]),
    [[own, 7]],
  );
  await update(own, { idleMinutes: 0 });
  assert.deepEqual(
    (await listPossibleSleepers(api.db)).filter(({ id }) => id === own),
    [],
  );
  const created = await api.call('POST', `/v1/orgs/${api.orgId}/sandboxes`, {
    body: { agent: 'agent_one', projectId: api.projectId, idleMinutes: 3 },
    headers: { prefer: 'respond-async' },
  });
  assert.equal(created.body.sandbox.idleMinutes, 3);
});
