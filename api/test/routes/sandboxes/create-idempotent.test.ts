// Creates with an Idempotency-Key, with the real durable work and a stand-in host.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { sql } from 'kysely';
import { startApi, type Answer, type TestApi, type TestOrg } from '../../world/api.ts';
import { settled } from '../../world/settled.ts';

let api: TestApi;
before(async () => {
  api = await startApi({ durable: true });
});
after(() => api.close());

const create = (
  key: string | undefined,
  body: object = {},
  org: TestOrg = api,
  headers: Record<string, string> = {},
): Promise<Answer> =>
  api.call('POST', `/v1/orgs/${org.orgId}/sandboxes`, {
    token: org.token,
    body: { agent: 'agent_one', projectId: org.projectId, ...body },
    headers: { ...(key === undefined ? {} : { 'idempotency-key': key }), ...headers },
  });
const named = async (name: string): Promise<string[]> =>
  (await api.db.selectFrom('sandbox').select('id').where('name', '=', name).execute()).map((row) => row.id);
const isReplay = (answer: Answer): boolean => answer.headers.get('idempotent-replayed') === 'true';

test('a repeated create with the same key returns the current sandbox, marked as a replay', async () => {
  const first = await settled(api, () => create('again', { name: 'again', metadata: { a: 1, b: 2 } }));
  assert.equal(first.status, 201);
  assert.equal(isReplay(first), false);
  const second = await create('again', { metadata: { b: 2, a: 1 }, name: 'again' });
  assert.equal(second.status, 201);
  assert.equal(isReplay(second), true);
  assert.deepEqual(second.body, first.body);
  assert.equal(api.host.made.get(first.body.sandbox.id), 1);

  await settled(api, () => api.call('POST', `/v1/sandboxes/${first.body.sandbox.id}/destroy`));
  const third = await create('again', { name: 'again', metadata: { a: 1, b: 2 } });
  assert.equal(third.body.sandbox.id, first.body.sandbox.id);
  assert.equal(third.body.sandbox.status, 'deleted');
  assert.deepEqual(await named('again'), [first.body.sandbox.id]);
});

test('creates without a key, or with another key, make separate sandboxes', async () => {
  const made = [
    await create(undefined, { name: 'own' }),
    await create('one', { name: 'own' }),
    await create('other', { name: 'own' }),
  ];
  assert.ok(made.every((answer) => !isReplay(answer)));
  assert.equal((await named('own')).length, 3);
});

test('the same key with another body is 409 idempotency_key_conflict and makes nothing', async () => {
  await create('conflict', { name: 'first body' });
  for (const body of [{ name: 'other body' }, {}, { name: 'first body', metadata: {} }]) {
    const answer = await create('conflict', body);
    assert.equal(answer.status, 409);
    assert.equal(answer.body.error.code, 'idempotency_key_conflict');
  }
  assert.deepEqual(await named('other body'), []);
});

test('a key is scoped to its org', async () => {
  const other = await api.makeOrg();
  const [one, two] = [await create('of an org'), await create('of an org', {}, other)];
  assert.deepEqual([one.status, two.status, isReplay(two)], [201, 201, false]);
  assert.notEqual(one.body.sandbox.id, two.body.sandbox.id);
});

test('twenty concurrent creates with one key make one sandbox, and all return it ready', async () => {
  api.host.createMs = 200;
  try {
    const answers = await Promise.all(
      Array.from({ length: 20 }, () => settled(api, () => create('at once', { name: 'at once' }))),
    );
    const [id] = await named('at once');
    assert.ok(id !== undefined);
    for (const { status, body } of answers)
      assert.deepEqual([status, body.sandbox.id, body.sandbox.status], [201, id, 'ready']);
    assert.equal(answers.filter(isReplay).length, 19);
    assert.equal((await named('at once')).length, 1);
    assert.equal(api.host.made.get(id), 1);
  } finally {
    api.host.createMs = 0;
  }
});

test('a replay with respond-async returns the current state at once', async () => {
  api.host.createMs = 60_000;
  try {
    await create('async', {}, api, { prefer: 'respond-async' });
    const replay = await create('async', {}, api, { prefer: 'respond-async' });
    assert.equal(isReplay(replay), true);
    assert.equal(replay.headers.get('preference-applied'), 'respond-async');
    assert.equal(replay.body.sandbox.status, 'provisioning');
  } finally {
    api.host.createMs = 0;
    api.host.finish('PUT');
  }
});

test('a failed create releases its key, which then makes a sandbox with any body', async () => {
  assert.equal(
    (await create('failed', { projectId: 'prj_aaaaaaaaaaaaaaaaaaaaaaaa' })).body.error.code,
    'unknown_project',
  );
  await api.db.updateTable('subscription').set({ status: 'canceled' }).where('org_id', '=', api.orgId).execute();
  assert.equal((await create('failed')).body.error.code, 'no_active_plan');
  await api.db.updateTable('subscription').set({ status: 'active' }).where('org_id', '=', api.orgId).execute();
  const made = await create('failed', { name: 'made at last' });
  assert.deepEqual([made.status, isReplay(made)], [201, false]);
});

test('when one of two concurrent creates fails, the other uses the key', async () => {
  const [one, other] = await Promise.all([
    create('raced', { projectId: 'prj_aaaaaaaaaaaaaaaaaaaaaaaa' }),
    create('raced'),
  ]);
  // In either order the failing body never keeps the key, and the valid one has at most a temporary
  // conflict.
  assert.ok(['unknown_project', 'idempotency_key_conflict'].includes(one.body.error.code));
  assert.equal(other.status, 201);
});

test('a replay needs no plan and no capacity', async () => {
  const first = await create('kept');
  await api.db.updateTable('subscription').set({ status: 'canceled' }).where('org_id', '=', api.orgId).execute();
  try {
    assert.equal((await create('kept')).body.sandbox.id, first.body.sandbox.id);
  } finally {
    await api.db.updateTable('subscription').set({ status: 'active' }).where('org_id', '=', api.orgId).execute();
  }
});

test('a key lasts 24 hours and then makes a new sandbox, even before its row is deleted', async () => {
  const first = await create('old');
  const age = (hours: string) =>
    sql`update idempotency_key set created_at = now() - ${hours}::interval where key = 'old'`.execute(api.db);
  await age('23 hours 59 minutes');
  assert.equal((await create('old')).body.sandbox.id, first.body.sandbox.id);
  await age('24 hours 1 second');
  const later = await create('old', { name: 'with another body' });
  assert.deepEqual([later.status, isReplay(later)], [201, false]);
  assert.notEqual(later.body.sandbox.id, first.body.sandbox.id);
  assert.equal(isReplay(await create('old', { name: 'with another body' })), true);
});

for (const [what, key] of [
  ['empty', ''],
  ['longer than 255 characters', 'k'.repeat(256)],
  ['not ASCII', 'schlüssel'],
  ['a tab', 'a\tb'],
] as const) {
  test(`a key that is ${what} is 400 invalid_request`, async () => {
    const answer = await create(key);
    assert.equal(answer.status, 400);
    assert.equal(answer.body.error.code, 'invalid_request');
    assert.match(
      answer.body.error.message,
      /^the header Idempotency-Key must occur once, with 1 to 255 printable ASCII characters$/,
    );
  });
}

test('keys of 255 characters, with spaces and punctuation, are accepted', async () => {
  for (const key of ['k'.repeat(255), 'order 42 / "~"!']) {
    const first = await create(key);
    assert.equal((await create(key)).body.sandbox.id, first.body.sandbox.id);
  }
});

test('a route without idempotency ignores the header, whatever its value', async () => {
  const { id } = await api.makeSandbox('deleted');
  const answer = await api.call('POST', `/v1/sandboxes/${id}/destroy`, {
    headers: { 'idempotency-key': 'k'.repeat(300) },
  });
  assert.deepEqual([answer.status, isReplay(answer)], [200, false]);
});
