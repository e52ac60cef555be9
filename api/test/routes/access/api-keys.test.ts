// API keys: created, listed and revoked in a sign-in session; what a key may never do.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { ADMINISTRATION, permission, ROLE_PERMISSIONS, role } from '@berth/contract/route/permissions.ts';
import type { Method } from '@berth/contract/route/route.ts';
import { ROUTES } from '@berth/contract/routes.ts';
import { sql } from 'kysely';
import { tokenSha256 } from '../../../src/services/access/bearer-token.ts';
import { newId } from '../../../src/store/database/ids.ts';
import { routeOf, signInAs, startApi, type Answer, type TestApi } from '../../world/api.ts';
import { untilTrue } from '../../../../os/test/until.ts';

let api: TestApi;
let owner: string;
before(async () => {
  api = await startApi({ durable: false });
  owner = (await signInAs(api.db, api.userId)).token;
});
after(() => api.close());

const keysPath = (): string => `/v1/orgs/${api.orgId}/api-keys`;
const create = (body: object, token = owner): Promise<Answer> => api.call('POST', keysPath(), { token, body });
const list = async (token = owner): Promise<Record<string, unknown>[]> =>
  (await api.call('GET', keysPath(), { token })).body.apiKeys;
const revoke = (keyId: string, token = owner): Promise<Answer> =>
  api.call('DELETE', `${keysPath()}/${keyId}`, { token });
const rowsAbout = (keyId: string) =>
  api.db.selectFrom('activity').selectAll().where('subject_id', '=', keyId).orderBy('at').orderBy('seq').execute();

test('a key acts as its creator and shows its token only at creation', async () => {
  const admin = await api.makeSession({ role: 'admin' });
  const { status, body, headers } = await create(
    { name: 'CI', scopes: ['sandbox.read'], expiresInDays: 30 },
    admin.token,
  );
  assert.equal(status, 201);
  const { apiKey, token } = body;
  assert.match(token, /^brt_[0-9A-Za-z]{38}$/);
  assert.deepEqual(apiKey, {
    id: apiKey.id,
    orgId: api.orgId,
    name: 'CI',
    tokenPrefix: token.slice(0, 10),
    scopes: ['sandbox.read'],
    createdBy: admin.userId,
    createdAt: apiKey.createdAt,
    expiresAt: new Date(Date.parse(apiKey.createdAt) + 30 * 86_400_000).toISOString(),
    revokedAt: null,
    viaSso: false,
    lastUsedAt: null,
  });
  assert.equal(headers.get('cache-control'), 'no-store');
  assert.equal((await api.call('GET', '/v1/me', { token })).body.id, admin.userId);

  const stored = await api.db.selectFrom('api_key').selectAll().where('id', '=', apiKey.id).executeTakeFirstOrThrow();
  assert.deepEqual(stored.token_sha256, tokenSha256(token));
  const listed = (await list()).find(({ id }) => id === apiKey.id);
  assert.deepEqual({ ...listed, lastUsedAt: null }, apiKey);
  const everything = JSON.stringify([stored, listed, await rowsAbout(apiKey.id)]);
  assert.equal(everything.includes(token), false);

  const [left, ...more] = await rowsAbout(apiKey.id);
  assert.deepEqual(more, []);
  assert.deepEqual(
    [left?.kind, left?.subject_kind, left?.actor_kind, left?.actor_user_id, left?.request_id],
    ['api_key_created', 'api_key', 'session', admin.userId, headers.get('x-request-id')],
  );
});

test('missing or null scopes are unscoped, an empty list grants nothing, duplicates are merged', async () => {
  for (const scopes of [undefined, null]) {
    const { apiKey, token } = (await create({ name: 'unscoped', scopes })).body;
    assert.equal(apiKey.scopes, null);
    assert.equal((await api.call('GET', `/v1/orgs/${api.orgId}/sandboxes`, { token })).status, 200);
  }
  const empty = (await create({ name: 'empty', scopes: [] })).body;
  assert.deepEqual(empty.apiKey.scopes, []);
  assert.equal((await api.call('GET', '/v1/me', { token: empty.token })).status, 200);
  const denied = await api.call('GET', `/v1/orgs/${api.orgId}/sandboxes`, { token: empty.token });
  assert.equal(denied.body.error.code, 'permission_denied');
  const twice = await create({ name: 'twice', scopes: ['sandbox.read', 'project.read', 'sandbox.read'] });
  assert.deepEqual(twice.body.apiKey.scopes, ['sandbox.read', 'project.read']);
  const all = await create({ name: 'all', scopes: permission.options });
  assert.deepEqual(all.body.apiKey.scopes, permission.options);
});

test('an unknown scope is 400, and the message lists the known scopes', async () => {
  const { status, body } = await create({ name: 'wrong', scopes: ['sandbox.read', 'sandbox.fly'] });
  assert.equal(status, 400);
  assert.match(body.error.message, /^body\.scopes\.1 must be one of /);
  for (const name of permission.options) assert.ok(body.error.message.includes(`"${name}"`), name);
  assert.match(body.error.message, /not "sandbox\.fly"$/);
});

for (const [what, body, told] of [
  ['no name', {}, /body\.name is required/],
  ['an empty name', { name: '' }, /body\.name must be at least 1 character/],
  ['a name of 101 characters', { name: 'n'.repeat(101) }, /body\.name must be at most 100 characters/],
  ['expiresInDays 0', { name: 'k', expiresInDays: 0 }, /body\.expiresInDays must be at least 1, not 0/],
  ['expiresInDays 366', { name: 'k', expiresInDays: 366 }, /body\.expiresInDays must be at most 365, not 366/],
  ['expiresInDays 1.5', { name: 'k', expiresInDays: 1.5 }, /body\.expiresInDays must be an integer/],
  ['expiresInDays as text', { name: 'k', expiresInDays: '30' }, /body\.expiresInDays must be/],
  ['scopes as text', { name: 'k', scopes: 'sandbox.read' }, /body\.scopes must be an array/],
  ['an unknown field', { name: 'k', role: 'owner' }, /body\.role: unknown field; allowed: name, expiresInDays, scopes/],
] as const) {
  test(`a key with ${what} is 400 and names the allowed values`, async () => {
    const { status, body: answer } = await create(body);
    assert.equal(status, 400);
    assert.match(answer.error.message, told);
  });
}

test('expiresInDays is 1 to 365; missing or null means no expiry', async () => {
  for (const expiresInDays of [1, 365]) {
    const { apiKey } = (await create({ name: 'expiring', expiresInDays })).body;
    assert.equal(Date.parse(apiKey.expiresAt) - Date.parse(apiKey.createdAt), expiresInDays * 86_400_000);
  }
  for (const expiresInDays of [undefined, null])
    assert.equal((await create({ name: 'lasting', expiresInDays })).body.apiKey.expiresAt, null);
});

test("the list has this org's keys, newest first, with expired and revoked ones and last uses", async () => {
  const other = await api.makeOrg();
  const made: string[] = [];
  for (const name of ['first', 'second', 'third']) made.unshift((await create({ name })).body.apiKey.id);
  await revoke(made[1] ?? '');
  await api.db
    .updateTable('api_key')
    .set({ expires_at: new Date(Date.now() - 1_000) })
    .where('id', '=', made[2] ?? '')
    .execute();
  const listed = await list();
  assert.deepEqual(
    listed.slice(0, 3).map(({ id }) => id),
    made,
  );
  assert.notEqual(listed[1]?.['revokedAt'], null);
  assert.ok(Date.parse(String(listed[2]?.['expiresAt'])) < Date.now());
  assert.ok(listed.every(({ orgId }) => orgId === api.orgId));
  const ofOther = await api.db.selectFrom('api_key').select('id').where('org_id', '=', other.orgId).execute();
  assert.equal(
    listed.some(({ id }) => ofOther.some((key) => key.id === id)),
    false,
  );

  await api.call('GET', '/v1/me');
  // Recorded concurrently with the response.
  await untilTrue('the use of the operator key is listed', async () =>
    (await list()).some(({ name, lastUsedAt }) => name === 'operator' && lastUsedAt !== null),
  );
});

test('a revoked key is 401 at the next request; a second revocation changes nothing', async () => {
  const { apiKey, token } = (await create({ name: 'short-lived' })).body;
  assert.equal((await api.call('GET', '/v1/me', { token })).status, 200);
  const first = await revoke(apiKey.id);
  assert.equal(first.status, 200);
  assert.notEqual(first.body.apiKey.revokedAt, null);
  assert.equal((await api.call('GET', '/v1/me', { token })).status, 401);
  const again = await revoke(apiKey.id);
  assert.deepEqual({ ...again.body.apiKey, lastUsedAt: null }, { ...first.body.apiKey, lastUsedAt: null });
  const rows = await rowsAbout(apiKey.id);
  assert.deepEqual(
    rows.map(({ kind, request_id: requestId }) => [kind, requestId]),
    [
      ['api_key_created', rows[0]?.request_id],
      ['api_key_revoked', first.headers.get('x-request-id')],
    ],
  );
});

test('concurrent revocations return the same instant and add one feed row', async () => {
  const { apiKey } = (await create({ name: 'contended' })).body;
  const answers = await Promise.all(Array.from({ length: 8 }, () => revoke(apiKey.id)));
  assert.deepEqual(new Set(answers.map(({ status }) => status)), new Set([200]));
  assert.equal(new Set(answers.map(({ body }) => body.apiKey.revokedAt)).size, 1);
  assert.equal((await rowsAbout(apiKey.id)).filter(({ kind }) => kind === 'api_key_revoked').length, 1);
});

test('a key is created or revoked atomically with its feed row', async () => {
  const { apiKey, token } = (await create({ name: 'kept' })).body;
  const before = await list();
  await sql`alter table activity rename to activity_away`.execute(api.db);
  try {
    assert.equal((await create({ name: 'never made' })).status, 500);
    assert.equal((await revoke(apiKey.id)).status, 500);
  } finally {
    await sql`alter table activity_away rename to activity`.execute(api.db);
  }
  assert.deepEqual(
    (await list()).map(({ id, revokedAt }) => [id, revokedAt]),
    before.map(({ id, revokedAt }) => [id, revokedAt]),
  );
  assert.equal((await api.call('GET', '/v1/me', { token })).status, 200);
});

test("another org's key is 403, a missing one 404, and neither is revoked via one's own org", async () => {
  const other = await api.makeOrg();
  const foreign = await api.db
    .selectFrom('api_key')
    .selectAll()
    .where('org_id', '=', other.orgId)
    .executeTakeFirstOrThrow();
  const answer = await revoke(foreign.id);
  assert.deepEqual([answer.status, answer.body.error.code], [403, 'org_access_denied']);
  assert.equal((await api.call('GET', '/v1/me', { token: other.token })).status, 200);
  for (const keyId of [newId('apiKey'), 'key_x', '%00', 'a'.repeat(600)]) {
    const missing = await revoke(keyId);
    assert.deepEqual([missing.status, missing.body.error.code], [404, 'api_key_not_found']);
  }
});

test('keys are managed only by roles with api_keys.manage', async () => {
  const { apiKey } = (await create({ name: 'guarded' })).body;
  for (const name of role.options) {
    const { token } = await api.makeSession({ role: name });
    const may = ROLE_PERMISSIONS[name].has('api_keys.manage');
    const statuses = [
      (await api.call('GET', keysPath(), { token })).status,
      (await create({ name: `of ${name}` }, token)).status,
      (await revoke(apiKey.id, token)).status,
    ];
    assert.deepEqual(statuses, may ? [200, 201, 200] : [403, 403, 403], name);
  }
  const stranger = await api.makeSession({ role: null });
  assert.equal((await create({ name: 'stranger' }, stranger.token)).body.error.code, 'org_access_denied');
});

/** Actions that the spec forbids to keys, with their routes if they exist. */
const FORBIDDEN: [what: string, method: Method, path: (names: Record<string, string>) => string, body?: object][] = [
  ['create an org', 'POST', () => '/v1/orgs', { name: 'Mine' }],
  ['list invitations', 'GET', ({ orgId }) => `/v1/orgs/${orgId}/invitations`],
  ['send an invitation', 'POST', ({ orgId }) => `/v1/orgs/${orgId}/invitations`, { email: 'friend@example.test' }],
  ['revoke an invitation', 'DELETE', ({ orgId }) => `/v1/orgs/${orgId}/invitations/inv_aaaaaaaaaaaaaaaaaaaaaaaa`],
  ['look up an invitation', 'GET', () => '/v1/invitations/token'],
  ['accept an invitation', 'POST', () => '/v1/invitations/token/accept'],
  ["change a member's role", 'PATCH', ({ orgId, userId }) => `/v1/orgs/${orgId}/members/${userId}`, { role: 'viewer' }],
  ['remove a member', 'DELETE', ({ orgId, userId }) => `/v1/orgs/${orgId}/members/${userId}`],
  ['leave the org', 'DELETE', ({ orgId }) => `/v1/me/orgs/${orgId}`],
  ['delete a project', 'DELETE', ({ orgId, projectId }) => `/v1/orgs/${orgId}/projects/${projectId}`],
  ['mint a key', 'POST', ({ orgId }) => `/v1/orgs/${orgId}/api-keys`, { name: 'another' }],
  ['list keys', 'GET', ({ orgId }) => `/v1/orgs/${orgId}/api-keys`],
  ['revoke a key', 'DELETE', ({ orgId, keyId }) => `/v1/orgs/${orgId}/api-keys/${keyId}`],
  ['make a personal agent token', 'POST', () => '/v1/me/agent-tokens', { name: 'mine' }],
  ['list personal agent tokens', 'GET', () => '/v1/me/agent-tokens'],
  ['revoke a personal agent token', 'DELETE', () => '/v1/me/agent-tokens/agt_aaaaaaaaaaaaaaaaaaaaaaaa'],
];

for (const [what, method, path, body] of FORBIDDEN) {
  test(`a key cannot ${what}, even if unscoped and created by an owner`, async () => {
    const { id: keyId } = await api.db
      .selectFrom('api_key')
      .select('id')
      .where('token_sha256', '=', tokenSha256(api.token))
      .executeTakeFirstOrThrow();
    const filled = path({ orgId: api.orgId, projectId: api.projectId, userId: api.userId, keyId });
    assert.deepEqual(routeOf(method, filled)?.auth, ['session'], 'a route for this exists, for sessions alone');
    const count = async (): Promise<unknown> =>
      await api.db
        .selectFrom('activity')
        .select(({ fn }) => fn.countAll().as('rows'))
        .executeTakeFirst();
    const before = await count();
    const answer = await api.call(method, filled, body === undefined ? {} : { body });
    assert.deepEqual([answer.status, answer.body.error.code], [403, 'auth_kind_not_allowed']);
    assert.match(answer.body.error.message, /does not accept an API key; use an access token/);
    assert.deepEqual(await count(), before);
    assert.equal((await api.call('GET', '/v1/me')).status, 200);
  });
}

test('no route that accepts a key needs a permission that administers the org', () => {
  const open = ROUTES.filter(({ auth }) => auth.includes('api_key')).map(({ permission: needed }) => needed);
  assert.deepEqual(
    open.filter((needed) => needed !== null && ADMINISTRATION.includes(needed)),
    [],
  );
});

test('a key can read and create projects and operate sandboxes', async () => {
  const { token } = (await create({ name: 'platform' })).body;
  assert.equal((await api.call('GET', `/v1/orgs/${api.orgId}/projects`, { token })).status, 200);
  assert.equal(
    (await api.call('POST', `/v1/orgs/${api.orgId}/projects`, { token, body: { name: 'by a key' } })).status,
    201,
  );
  const sandbox = { agent: 'agent_one', projectId: api.projectId };
  const headers = { prefer: 'respond-async' };
  const made = await api.call('POST', `/v1/orgs/${api.orgId}/sandboxes`, { token, body: sandbox, headers });
  assert.equal(made.status, 201);
  assert.equal((await api.call('GET', `/v1/sandboxes/${made.body.sandbox.id}`, { token })).status, 200);
});

test("with a key, me is its creator and my orgs are the key's org only", async () => {
  const person = await api.makeSession({ role: 'admin' });
  const other = await api.makeOrg();
  await api.db
    .insertInto('membership')
    .values({ org_id: other.orgId, user_id: person.userId, role: 'owner' })
    .execute();
  const { token } = (await create({ name: 'one org' }, person.token)).body;
  const me = await api.call('GET', '/v1/me', { token });
  assert.deepEqual(me.body, { id: person.userId, email: person.email, displayName: 'admin' });
  const orgsOf = async (bearer: string): Promise<string[]> =>
    (await api.call('GET', '/v1/me/orgs', { token: bearer })).body.orgs.map(({ id }: { id: string }) => id);
  assert.deepEqual(await orgsOf(token), [api.orgId]);
  assert.deepEqual((await orgsOf(person.token)).toSorted(), [api.orgId, other.orgId].toSorted());
  assert.equal(
    (await api.call('GET', `/v1/orgs/${other.orgId}/sandboxes`, { token })).body.error.code,
    'org_access_denied',
  );
});
