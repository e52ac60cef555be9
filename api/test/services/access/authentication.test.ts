// Credentials over time and across replicas: expiry, revocation, a demoted or removed holder, last
// use.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { ADMINISTRATION, ROLE_PERMISSIONS, type Role } from '@berth/contract/route/permissions.ts';
import { sql } from 'kysely';
import { newToken, tokenSha256 } from '../../../src/services/access/bearer-token.ts';
import { signInAs, startApi, type Answer, type TestApi } from '../../world/api.ts';
import { startReplica, type Replica } from '../../world/replica.ts';
import { untilTrue } from '../../../../os/test/until.ts';

let api: TestApi;
/** Another API instance on the same database, with its own connections and memory. */
let replica: Replica;
before(async () => {
  api = await startApi({ durable: false });
  replica = await startReplica(api);
});
after(async () => {
  await replica.close();
  await api.close();
});

/** Returns status and error code of the same call on both instances. */
async function requestBoth(token: string, path: string): Promise<[status: number, code: string | undefined][]> {
  const here = await api.call('GET', path, { token });
  const there = await fetch(replica.url + path, { headers: { authorization: `Bearer ${token}` } });
  const body = (await there.json()) as { error?: { code: string } };
  return [
    [here.status, here.body.error?.code],
    [there.status, body.error?.code],
  ];
}

const bothSay = (status: number, code?: string): [number, string | undefined][] => [
  [status, code],
  [status, code],
];
const orgPath = (list: 'sandboxes' | 'activity'): string => `/v1/orgs/${api.orgId}/${list}`;

const me = (token: string): Promise<Answer> => api.call('GET', '/v1/me', { token });
const keyOf = (token: string) =>
  api.db.selectFrom('api_key').selectAll().where('token_sha256', '=', tokenSha256(token)).executeTakeFirstOrThrow();

test('a token is stored as its SHA-256 and a recognisable prefix only', async () => {
  const token = await api.makeKey({});
  const rows =
    JSON.stringify(await api.db.selectFrom('api_key').selectAll().execute()) +
    JSON.stringify(await api.db.selectFrom('activity').selectAll().execute());
  assert.equal(rows.includes(token), false);
  assert.equal((await keyOf(token)).token_prefix, token.slice(0, 10));
});

test('a key works until its expiry and is 401 afterwards, naming the expiry', async () => {
  const token = await api.makeKey({ expiresInDays: 1 });
  const { id, expires_at } = await keyOf(token);
  assert.ok(Math.abs(Number(expires_at) - (Date.now() + 86_400_000)) < 60_000);
  assert.equal((await me(token)).status, 200);
  await api.db
    .updateTable('api_key')
    .set({ expires_at: sql<Date>`now()` })
    .where('id', '=', id)
    .execute();
  const answer = await me(token);
  assert.equal(answer.status, 401);
  assert.match(answer.body.error.message, /expired at \d{4}-.*Z$/);
});

test('a revoked key is 401 at once', async () => {
  const token = await api.makeKey({});
  assert.equal((await me(token)).status, 200);
  await api.db
    .updateTable('api_key')
    .set({ revoked_at: sql<Date>`now()` })
    .where('token_sha256', '=', tokenSha256(token))
    .execute();
  const answer = await me(token);
  assert.equal(answer.status, 401);
  assert.match(answer.body.error.message, /revoked/);
});

test("a key whose creator's account is gone is 401", async () => {
  const org = await api.makeOrg();
  await api.db.deleteFrom('project').where('org_id', '=', org.orgId).execute();
  await api.db.deleteFrom('user').where('id', '=', org.userId).execute();
  const answer = await me(org.token);
  assert.equal(answer.status, 401);
  assert.match(answer.body.error.message, /creator/);
});

test('a token with a wrong checksum is refused without a database query', async () => {
  // A missing table turns every query into a 500.
  await sql`alter table api_key rename to api_key_away`.execute(api.db);
  try {
    const wrong = newToken('api_key').replace(/.$/, (last) => (last === 'a' ? 'b' : 'a'));
    assert.equal((await me(wrong)).status, 401);
    assert.equal((await me(newToken('api_key'))).status, 500);
  } finally {
    await sql`alter table api_key_away rename to api_key`.execute(api.db);
  }
});

test('the scheme Bearer is accepted in any case', async () => {
  assert.equal(
    (await api.call('GET', '/v1/me', { token: null, headers: { authorization: `bearer ${api.token}` } })).status,
    200,
  );
});

test('the use of a key is recorded at most once a minute', async () => {
  const token = await api.makeKey({});
  assert.equal((await keyOf(token)).last_used_at, null);
  await me(token);
  await untilTrue('the use is noted', async () => (await keyOf(token)).last_used_at !== null);
  const noted = (await keyOf(token)).last_used_at;
  await me(token);
  await me(token);
  assert.deepEqual((await keyOf(token)).last_used_at, noted);
});

test("with an API key, me is the key's creator and my orgs are the key's org, with the creator's role", async () => {
  const { body } = await me(api.token);
  assert.deepEqual(body, { id: api.userId, email: 'owner@example.test', displayName: 'Olive Owner' });
  const other = await api.makeOrg();
  await api.db.insertInto('membership').values({ org_id: other.orgId, user_id: api.userId, role: 'viewer' }).execute();
  const { orgs } = (await api.call('GET', '/v1/me/orgs')).body;
  assert.deepEqual(
    orgs.map((org: { id: string; role: string }) => [org.id, org.role]),
    [[api.orgId, 'owner']],
  );
});

test('my orgs list the permissions of role, scopes or grants, sorted', async () => {
  const permissionsWith = async (token: string): Promise<string[]> =>
    (await api.call('GET', '/v1/me/orgs', { token })).body.orgs[0].permissions;
  for (const role of ['owner', 'viewer'] as const) {
    const { token } = await api.makeSession({ role });
    assert.deepEqual(await permissionsWith(token), [...ROLE_PERMISSIONS[role]].sort());
  }
  const { token } = await signInAs(api.db, api.userId);
  const create = async (path: string, body: object): Promise<string> =>
    (await api.call('POST', path, { token, body })).body.token;
  const keys = `/v1/orgs/${api.orgId}/api-keys`;
  const unscoped = await permissionsWith(await create(keys, { name: 'unscoped' }));
  assert.deepEqual(
    [...unscoped, ...ADMINISTRATION].sort(),
    [...ROLE_PERMISSIONS.owner].sort(),
    'no route that administers an org accepts a key',
  );
  const scopes = ['sandbox.read', 'project.read', 'api_keys.manage'];
  assert.deepEqual(await permissionsWith(await create(keys, { name: 'scoped', scopes })), [
    'project.read',
    'sandbox.read',
  ]);
  const agent = await create('/v1/me/agent-tokens', { name: 'phone', access: 'read_only' });
  assert.deepEqual(await permissionsWith(agent), ['agent_session.read']);
});

test('a key revoked on one instance is refused by all others at the next request', async () => {
  const owner = await signInAs(api.db, api.userId);
  for (const revokedBy of [api.url, replica.url]) {
    const path = `/v1/orgs/${api.orgId}/api-keys`;
    const { apiKey, token } = (await api.call('POST', path, { token: owner.token, body: { name: 'shared' } })).body;
    assert.deepEqual(await requestBoth(token, orgPath('sandboxes')), bothSay(200));
    const headers = { authorization: `Bearer ${owner.token}` };
    assert.equal((await fetch(`${revokedBy}${path}/${apiKey.id}`, { method: 'DELETE', headers })).status, 200);
    assert.deepEqual(await requestBoth(token, orgPath('sandboxes')), bothSay(401, 'unauthenticated'));
  }
});

test('an agent token revoked on one instance is refused by all others at the next request', async () => {
  const person = await api.makeSession({ role: 'member' });
  const path = '/v1/me/agent-tokens';
  const { agentToken, token } = (await api.call('POST', path, { token: person.token, body: { name: 'shared' } })).body;
  assert.deepEqual(await requestBoth(token, '/v1/me'), bothSay(200));
  const headers = { authorization: `Bearer ${person.token}` };
  assert.equal((await fetch(`${replica.url}${path}/${agentToken.id}`, { method: 'DELETE', headers })).status, 200);
  assert.deepEqual(await requestBoth(token, '/v1/me'), bothSay(401, 'unauthenticated'));
});

test("demoting a key's creator reduces the key at once on every instance; promoting restores it", async () => {
  const creator = await api.makeSession({ role: 'admin' });
  const body = { name: 'follows its creator', scopes: ['sandbox.read', 'sandbox.wake'] };
  const { token } = (await api.call('POST', `/v1/orgs/${api.orgId}/api-keys`, { token: creator.token, body })).body;
  const wakes = async (): Promise<number[]> => {
    const { id } = await api.makeSandbox('ready');
    const asked = [api.url, replica.url].map((url) =>
      fetch(`${url}/v1/sandboxes/${id}/wake`, { method: 'POST', headers: { authorization: `Bearer ${token}` } }),
    );
    return (await Promise.all(asked)).map(({ status }) => status);
  };
  const setRole = (name: Role) =>
    api.db
      .updateTable('membership')
      .set({ role: name })
      .where('user_id', '=', creator.userId)
      .where('org_id', '=', api.orgId)
      .execute();
  // 400: allowed, but not wakeable.
  assert.deepEqual(await wakes(), [400, 400]);
  await setRole('viewer');
  assert.deepEqual(await wakes(), [403, 403]);
  assert.deepEqual(await requestBoth(token, orgPath('sandboxes')), bothSay(200));
  await setRole('member');
  assert.deepEqual(await wakes(), [400, 400]);
  // The role has the permission; the key's scopes never did.
  assert.deepEqual(await requestBoth(token, orgPath('activity')), bothSay(403, 'permission_denied'));
});

test('removing a creator from the org revokes org access of key and agent token on every instance', async () => {
  const creator = await api.makeSession({ role: 'admin' });
  const key = (
    await api.call('POST', `/v1/orgs/${api.orgId}/api-keys`, { token: creator.token, body: { name: 'of a leaver' } })
  ).body;
  const made = { name: 'of a leaver', canWake: true };
  const agent = (await api.call('POST', '/v1/me/agent-tokens', { token: creator.token, body: made })).body;
  const { id } = await api.makeSandbox('stopped');
  assert.deepEqual(await requestBoth(key.token, orgPath('sandboxes')), bothSay(200));
  await api.db.deleteFrom('membership').where('user_id', '=', creator.userId).execute();
  assert.deepEqual(await requestBoth(key.token, orgPath('sandboxes')), bothSay(403, 'org_access_denied'));
  assert.deepEqual(await requestBoth(key.token, `/v1/sandboxes/${id}`), bothSay(403, 'org_access_denied'));
  assert.deepEqual(await requestBoth(creator.token, orgPath('sandboxes')), bothSay(403, 'org_access_denied'));
  for (const url of [api.url, replica.url]) {
    const answer = await fetch(`${url}/v1/sandboxes/${id}/wake`, {
      method: 'POST',
      headers: { authorization: `Bearer ${agent.token}` },
    });
    assert.equal(answer.status, 403);
  }
  // The identity does not depend on the org.
  assert.deepEqual(await requestBoth(key.token, '/v1/me'), bothSay(200));
  for (const token of [key.token, agent.token])
    assert.deepEqual((await api.call('GET', '/v1/me/orgs', { token })).body, { orgs: [] });
});

test('a signed-out or expired sign-in session is refused by every instance at the next request', async () => {
  const person = await api.makeSession({ role: 'member' });
  const other = await signInAs(api.db, person.userId);
  assert.deepEqual(await requestBoth(person.token, '/v1/me'), bothSay(200));
  await api.db.deleteFrom('session').where('id', '=', person.loginId).execute();
  assert.deepEqual(await requestBoth(person.token, '/v1/me'), bothSay(401, 'unauthenticated'));
  assert.deepEqual(await requestBoth(other.token, '/v1/me'), bothSay(200));
  await api.db
    .updateTable('session_token')
    .set({ expires_at: sql<Date>`now()` })
    .where('login_id', '=', other.loginId)
    .execute();
  assert.deepEqual(await requestBoth(other.token, '/v1/me'), bothSay(401, 'unauthenticated'));
});
