// Creating orgs.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { SELF_HOSTED_PLAN } from '@berth/contract/billing/plans.ts';
import { startApi, type TestApi } from '../../world/api.ts';

let api: TestApi;
before(async () => {
  api = await startApi({ durable: false });
});
after(() => api.close());

test('the creator of an org is its owner and can use it at once', async () => {
  const { token, userId, email } = await api.makeSession({ role: null });
  const made = await api.call('POST', '/v1/orgs', { token, body: { name: 'Zoë & Co.' } });
  assert.equal(made.status, 201);
  const { org } = made.body;
  assert.match(org.id, /^org_[a-z2-7]{24}$/);
  assert.deepEqual([org.name, org.role], ['Zoë & Co.', 'owner']);
  assert.deepEqual((await api.call('GET', '/v1/me/orgs', { token })).body, { orgs: [org] });

  const { members } = (await api.call('GET', `/v1/orgs/${org.id}/members`, { token })).body;
  assert.deepEqual(members, [{ userId, email, displayName: 'nobody', role: 'owner', joinedAt: members[0].joinedAt }]);
  const project = await api.call('POST', `/v1/orgs/${org.id}/projects`, { token, body: {} });
  assert.equal(project.status, 201);
  const sandbox = await api.call('POST', `/v1/orgs/${org.id}/sandboxes`, {
    token,
    body: { agent: 'agent_one', projectId: project.body.project.id },
    headers: { prefer: 'respond-async' },
  });
  assert.equal(sandbox.status, 201);
});

test('a new org has the initial plan, and the feed names its creator', async () => {
  const { token, userId } = await api.makeSession({ role: null });
  const made = await api.call('POST', '/v1/orgs', { token, body: { name: 'Planned' } });
  const { id } = made.body.org;
  const subscription = await api.db
    .selectFrom('subscription')
    .selectAll()
    .where('org_id', '=', id)
    .executeTakeFirstOrThrow();
  assert.deepEqual([subscription.plan, subscription.status], [SELF_HOSTED_PLAN.id, 'active']);
  const rows = await api.db.selectFrom('activity').selectAll().where('org_id', '=', id).execute();
  assert.deepEqual(
    rows.map((row) => [
      row.kind,
      row.actor_kind,
      row.actor_user_id,
      row.subject_kind,
      row.subject_id,
      row.details,
      row.request_id,
    ]),
    [['org_created', 'session', userId, 'org', id, { name: 'Planned' }, made.headers.get('x-request-id')]],
  );
});

test('two orgs can have the same name', async () => {
  const { token } = await api.makeSession({ role: null });
  const make = async (): Promise<string> =>
    (await api.call('POST', '/v1/orgs', { token, body: { name: 'Twin' } })).body.org.id;
  assert.notEqual(await make(), await make());
});

for (const [title, body, message] of [
  ['without a name', {}, /^body\.name is required: a string$/],
  ['with an empty name', { name: '' }, /^body\.name must be at least 1 character long, not 0$/],
  [
    'with a name of more than 100 characters',
    { name: 'x'.repeat(101) },
    /^body\.name must be at most 100 characters long, not 101$/,
  ],
  ['with a NUL in its name', { name: 'a\0b' }, /^body\.name must not contain NUL characters/],
  ['with a plan', { name: 'x', plan: 'large' }, /^body\.plan: unknown field; allowed: name$/],
] as const) {
  test(`an org ${title} is 400 and names the allowed values`, async () => {
    const { token } = await api.makeSession({ role: null });
    const answer = await api.call('POST', '/v1/orgs', { token, body });
    assert.equal(answer.status, 400);
    assert.match(answer.body.error.message, message);
  });
}

test('an API key cannot create an org', async () => {
  const answer = await api.call('POST', '/v1/orgs', { body: { name: 'x' } });
  assert.deepEqual([answer.status, answer.body.error.code], [403, 'auth_kind_not_allowed']);
});
