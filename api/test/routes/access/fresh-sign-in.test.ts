// Actions that require a recent sign-in, called with older ones.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { role, ROLE_PERMISSIONS } from '@berth/contract/route/permissions.ts';
import { sql } from 'kysely';
import { startApi, type TestApi, type TestSession } from '../../world/api.ts';

let api: TestApi;
let owner: TestSession;
before(async () => {
  api = await startApi({ durable: false });
  owner = await api.makeSession({ role: 'owner' });
});
after(() => api.close());

async function age(userId: string, interval: string): Promise<void> {
  await sql`update "session" set "authenticatedAt" = now() - ${interval}::interval where "userId" = ${userId}`.execute(
    api.db,
  );
}

/** Roles that can create API keys, by the table. */
const KEY_ROLES = role.options.filter((name) => ROLE_PERMISSIONS[name].has('api_keys.manage'));

/** Promotions are in ascending order: a role that a member has grants nothing. */
const actions = (member: string): readonly (readonly [method: 'POST' | 'PATCH', path: string, body: object])[] => [
  ['POST', `/v1/orgs/${api.orgId}/api-keys`, { name: 'ci' }],
  ['POST', '/v1/me/agent-tokens', { name: 'laptop' }],
  ...KEY_ROLES.map(
    (name) => ['POST', `/v1/orgs/${api.orgId}/invitations`, { email: `new-${name}@example.test`, role: name }] as const,
  ),
  ...KEY_ROLES.toReversed().map(
    (name) => ['PATCH', `/v1/orgs/${api.orgId}/members/${member}`, { role: name }] as const,
  ),
];

test('an old sign-in creates no credentials, owners and admins; a recent one does', async () => {
  const { userId: member } = await api.makeSession({ role: 'member' });
  const { token } = owner;
  await age(owner.userId, '601 seconds');
  const before = await api.db.selectFrom('activity').select('id').execute();
  for (const [method, path, body] of actions(member)) {
    const refused = await api.call(method, path, { token, body });
    assert.equal(refused.status, 403, path);
    assert.equal(refused.body.error.code, 'reauthentication_required');
    assert.match(
      refused.body.error.message,
      /^this needs a sign-in of the last 10 minutes \(BERTH_REAUTHENTICATE_MINUTES\): .*http:\/\/berth\.example\.test\/confirm/,
    );
  }
  assert.equal((await api.db.selectFrom('activity').select('id').execute()).length, before.length);
  await age(owner.userId, '590 seconds');
  for (const [method, path, body] of actions(member)) {
    const { status } = await api.call(method, path, { token, body });
    assert.ok([200, 201].includes(status), `${path}: ${status}`);
  }
});

test('an old sign-in still reads, revokes, demotes, and invites members', async () => {
  const { token } = owner;
  await age(owner.userId, '0 seconds');
  const key = await api.call('POST', `/v1/orgs/${api.orgId}/api-keys`, { token, body: { name: 'old' } });
  await age(owner.userId, '20 days');
  const path = `/v1/orgs/${api.orgId}/api-keys`;
  assert.equal((await api.call('GET', path, { token })).status, 200);
  assert.equal((await api.call('DELETE', `${path}/${key.body.apiKey.id}`, { token })).status, 200);
  const body = { email: 'third@example.test' };
  assert.equal((await api.call('POST', `/v1/orgs/${api.orgId}/invitations`, { token, body })).status, 201);
  const { userId: other } = await api.makeSession({ role: 'owner' });
  for (const lower of ['admin', 'viewer', 'member']) {
    const demotion = { token, body: { role: lower } };
    assert.equal((await api.call('PATCH', `/v1/orgs/${api.orgId}/members/${other}`, demotion)).status, 200, lower);
  }
});

test('a caller without the permission learns that, not the age of the sign-in', async () => {
  const viewer = await api.makeSession({ role: 'viewer' });
  await age(viewer.userId, '1 day');
  const refused = await api.call('POST', `/v1/orgs/${api.orgId}/api-keys`, {
    token: viewer.token,
    body: { name: 'ci' },
  });
  assert.equal(refused.body.error.code, 'permission_denied');
});

test('with zero minutes any sign-in may create credentials', async () => {
  const { settings } = api.context;
  const { reauthenticateMinutes: before } = settings;
  settings.reauthenticateMinutes = 0;
  try {
    await age(owner.userId, '20 days');
    const { status } = await api.call('POST', '/v1/me/agent-tokens', { token: owner.token, body: { name: 'any' } });
    assert.equal(status, 201);
  } finally {
    settings.reauthenticateMinutes = before;
  }
});
