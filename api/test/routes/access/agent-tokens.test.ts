// Personal agent tokens: created, listed and revoked by their holder, and their current
// permissions.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { AGENT_TOKEN_DAYS } from '@berth/contract/route/limits.ts';
import { ROLE_PERMISSIONS, role } from '@berth/contract/route/permissions.ts';
import type { Route } from '@berth/contract/route/route.ts';
import { ROUTES } from '@berth/contract/routes.ts';
import { sql } from 'kysely';
import { tokenSha256 } from '../../../src/services/access/bearer-token.ts';
import { newId } from '../../../src/store/database/ids.ts';
import { signInAs, startApi, type Answer, type TestApi, type TestSession } from '../../world/api.ts';
import { makeAgentTokenRow, makePerson } from '../../world/people-rows.ts';
import { untilTrue } from '../../../../os/test/until.ts';

let api: TestApi;
let person: TestSession;
before(async () => {
  api = await startApi({ durable: false });
  person = await api.makeSession({ role: 'member' });
});
after(() => api.close());

const PATH = '/v1/me/agent-tokens';
const create = (body: object, token = person.token): Promise<Answer> => api.call('POST', PATH, { token, body });
const list = async (token = person.token): Promise<Record<string, unknown>[]> =>
  (await api.call('GET', PATH, { token })).body.agentTokens;
const revoke = (tokenId: string, token = person.token): Promise<Answer> =>
  api.call('DELETE', `${PATH}/${tokenId}`, { token });
const rowsAbout = (tokenId: string) =>
  api.db.selectFrom('activity').selectAll().where('subject_id', '=', tokenId).orderBy('at').orderBy('seq').execute();

test('a token defaults to 30 days, read and send, and is shown only at creation', async () => {
  const { status, body } = await create({ name: 'laptop' });
  assert.equal(status, 201);
  const { agentToken, token } = body;
  assert.match(token, /^bat_[0-9A-Za-z]{38}$/);
  assert.deepEqual(agentToken, {
    id: agentToken.id,
    name: 'laptop',
    tokenPrefix: token.slice(0, 10),
    access: 'read_send',
    canApprove: false,
    canWake: false,
    viaSso: false,
    createdAt: agentToken.createdAt,
    expiresAt: new Date(Date.parse(agentToken.createdAt) + AGENT_TOKEN_DAYS.default * 86_400_000).toISOString(),
    revokedAt: null,
    lastUsedAt: null,
  });
  const stored = await api.db
    .selectFrom('agent_token')
    .selectAll()
    .where('id', '=', agentToken.id)
    .executeTakeFirstOrThrow();
  assert.deepEqual(stored.token_sha256, tokenSha256(token));
  const listed = (await list()).find(({ id }) => id === agentToken.id);
  assert.deepEqual(listed, agentToken);
  assert.equal(JSON.stringify([stored, listed, await rowsAbout(agentToken.id)]).includes(token), false);
});

test('a token has the requested fields', async () => {
  const asked = { name: 'agent', expiresInDays: 365, access: 'read_send', canApprove: true, canWake: true };
  const { agentToken } = (await create(asked)).body;
  const { access, canApprove, canWake } = agentToken;
  assert.deepEqual({ access, canApprove, canWake }, { access: 'read_send', canApprove: true, canWake: true });
  assert.equal(Date.parse(agentToken.expiresAt) - Date.parse(agentToken.createdAt), 365 * 86_400_000);
  const reading = (await create({ name: 'reader', access: 'read_only', canApprove: false })).body.agentToken;
  assert.deepEqual([reading.access, reading.canApprove, reading.canWake], ['read_only', false, false]);
});

for (const [what, body, told] of [
  ['no name', {}, /body\.name is required/],
  ['expiresInDays 0', { name: 't', expiresInDays: 0 }, /body\.expiresInDays must be at least 1, not 0/],
  ['expiresInDays 366', { name: 't', expiresInDays: 366 }, /body\.expiresInDays must be at most 365, not 366/],
  ['expiresInDays null, as it always expires', { name: 't', expiresInDays: null }, /body\.expiresInDays must be/],
  ['another access', { name: 't', access: 'all' }, /body\.access must be one of "read_only", "read_send", not "all"/],
  [
    'read_only and canWake',
    { name: 't', access: 'read_only', canWake: true },
    /read_only cannot be combined with canApprove or canWake/,
  ],
  ['read_only and canApprove', { name: 't', access: 'read_only', canApprove: true }, /read_only cannot be combined/],
  [
    'an unknown field',
    { name: 't', scopes: [] },
    /body\.scopes: unknown field; allowed: name, expiresInDays, access, canApprove, canWake/,
  ],
] as const) {
  test(`a token with ${what} is 400 and names the allowed values`, async () => {
    const { status, body: answer } = await create(body);
    assert.equal(status, 400);
    assert.match(answer.error.message, told);
  });
}

test("the list has the caller's own tokens, newest first, with expired and revoked ones", async () => {
  const holder = await api.makeSession({ role: 'viewer' });
  const made: string[] = [];
  for (const name of ['first', 'second', 'third'])
    made.unshift((await create({ name }, holder.token)).body.agentToken.id);
  await revoke(made[1] ?? '', holder.token);
  await api.db
    .updateTable('agent_token')
    .set({ expires_at: new Date(Date.now() - 1_000) })
    .where('id', '=', made[2] ?? '')
    .execute();
  const listed = await list(holder.token);
  assert.deepEqual(
    listed.map(({ id }) => id),
    made,
  );
  assert.deepEqual(
    listed.map(({ revokedAt }) => revokedAt !== null),
    [false, true, false],
  );
  const ids = (await list()).map(({ id }) => id);
  assert.equal(
    made.some((id) => ids.includes(id)),
    false,
  );
});

test('a revoked token is 401 at the next request; a second revocation changes nothing', async () => {
  const { agentToken, token } = (await create({ name: 'short-lived' })).body;
  assert.equal((await api.call('GET', '/v1/me', { token })).status, 200);
  await untilTrue('the use of the token is listed', async () =>
    (await list()).some(({ id, lastUsedAt }) => id === agentToken.id && lastUsedAt !== null),
  );
  const first = await revoke(agentToken.id);
  assert.equal(first.status, 200);
  assert.notEqual(first.body.agentToken.revokedAt, null);
  const refused = await api.call('GET', '/v1/me', { token });
  assert.equal(refused.status, 401);
  assert.match(refused.body.error.message, /was revoked at/);
  const answers = await Promise.all([revoke(agentToken.id), revoke(agentToken.id)]);
  for (const { body } of answers) assert.deepEqual(body, first.body);
  assert.deepEqual(
    (await rowsAbout(agentToken.id)).map(({ kind }) => kind),
    ['agent_token_created', 'agent_token_revoked'],
  );
});

test('concurrent revocations return the same instant and add one feed row', async () => {
  const { agentToken } = (await create({ name: 'contended' })).body;
  const answers = await Promise.all(Array.from({ length: 8 }, () => revoke(agentToken.id)));
  assert.equal(new Set(answers.map(({ body }) => body.agentToken.revokedAt)).size, 1);
  assert.equal((await rowsAbout(agentToken.id)).filter(({ kind }) => kind === 'agent_token_revoked').length, 1);
});

test('a token is created or revoked atomically with its feed rows', async () => {
  const { agentToken, token } = (await create({ name: 'kept' })).body;
  const before = (await list()).map(({ id, revokedAt }) => [id, revokedAt]);
  await sql`alter table activity rename to activity_away`.execute(api.db);
  try {
    assert.equal((await create({ name: 'never made' })).status, 500);
    assert.equal((await revoke(agentToken.id)).status, 500);
  } finally {
    await sql`alter table activity_away rename to activity`.execute(api.db);
  }
  assert.deepEqual(
    (await list()).map(({ id, revokedAt }) => [id, revokedAt]),
    before,
  );
  assert.equal((await api.call('GET', '/v1/me', { token })).status, 200);
});

test('an expired token is 401 with its expiry', async () => {
  const { agentToken, token } = (await create({ name: 'old' })).body;
  await api.db
    .updateTable('agent_token')
    .set({ expires_at: sql<Date>`now()` })
    .where('id', '=', agentToken.id)
    .execute();
  const answer = await api.call('GET', '/v1/me', { token });
  assert.equal(answer.status, 401);
  assert.match(answer.body.error.message, /expired at \d{4}-.*Z$/);
});

test("another user's token is 403 agent_token_access_denied, a missing one 404", async () => {
  const { agentToken, token } = (await create({ name: 'mine' })).body;
  const other = await api.makeSession({ role: 'owner' });
  const answer = await revoke(agentToken.id, other.token);
  assert.deepEqual([answer.status, answer.body.error.code], [403, 'agent_token_access_denied']);
  assert.equal((await api.call('GET', '/v1/me', { token })).status, 200);
  for (const tokenId of [newId('agentToken'), 'agt_x', '%00', 'a'.repeat(200)]) {
    const missing = await revoke(tokenId);
    assert.deepEqual([missing.status, missing.body.error.code], [404, 'agent_token_not_found']);
  }
});

test("creating and revoking a token adds a row to the feed of each of its holder's orgs", async () => {
  const [one, two, three] = await Promise.all([api.makeOrg(), api.makeOrg(), api.makeOrg()]);
  const holder = await api.makeSession({ role: null });
  const lonely = (await create({ name: 'no org' }, holder.token)).body;
  assert.deepEqual(await rowsAbout(lonely.agentToken.id), []);
  for (const { orgId } of [one, two])
    await api.db.insertInto('membership').values({ org_id: orgId, user_id: holder.userId, role: 'viewer' }).execute();
  const made = await create({ name: 'two orgs', canWake: true }, holder.token);
  const { id } = made.body.agentToken;
  const revoked = await revoke(id, holder.token);
  const rows = await rowsAbout(id);
  const seen = (kind: string) => rows.filter((row) => row.kind === kind).map((row) => row.org_id);
  for (const kind of ['agent_token_created', 'agent_token_revoked'])
    assert.deepEqual(seen(kind).toSorted(), [one.orgId, two.orgId].toSorted(), kind);
  assert.equal(rows.length, 4);
  assert.equal(
    rows.some(({ org_id: orgId }) => orgId === three.orgId),
    false,
  );
  for (const row of rows) {
    const answer = row.kind === 'agent_token_created' ? made : revoked;
    assert.deepEqual(
      [row.subject_kind, row.actor_kind, row.actor_user_id, row.request_id],
      ['agent_token', 'session', holder.userId, answer.headers.get('x-request-id')],
    );
  }
  assert.deepEqual(rows[0]?.details, {
    name: 'two orgs',
    access: 'read_send',
    canApprove: false,
    canWake: true,
    expiresAt: made.body.agentToken.expiresAt,
  });
});

/** Routes that accept such tokens, beside those of agent sessions. */
const OPEN_TO_TOKENS = ['getService', 'getMe', 'listMyOrgs', 'wakeSandbox', 'resumeSandbox'];
const isOfAgentSessions = ({ path }: Route): boolean => /\/agent-sessions(\/|$)/.test(path);

test('the strongest token can use agent sessions, read me and my orgs, and wake', async () => {
  const holder = await api.makeSession({ role: 'owner' });
  const { token } = (await create({ name: 'strongest', canApprove: true, canWake: true }, holder.token)).body;
  const path = async (route: Route): Promise<string> =>
    route.path
      .replace('{orgId}', api.orgId)
      .replace('{projectId}', api.projectId)
      .replace('{sandboxId}', route.path.includes('{sandboxId}') ? (await api.makeSandbox('stopped')).id : '')
      .replace('{userId}', holder.userId)
      .replaceAll(/\{\w+\}/g, 'x');
  for (const route of ROUTES.filter(({ auth }) => auth.length > 0)) {
    const answer = await api.call(route.method, await path(route), { token, headers: { prefer: 'respond-async' } });
    if (isOfAgentSessions(route)) {
      // A sandbox that is asleep, and no session.
      const expected = route.path.includes('{sandboxId}') ? 409 : route.path.includes('{sessionId}') ? 404 : 200;
      assert.equal(answer.status, expected, `${route.name}: ${JSON.stringify(answer.body)}`);
      continue;
    }
    const open = OPEN_TO_TOKENS.includes(route.name);
    assert.equal(answer.status, open ? 200 : 403, `${route.name}: ${JSON.stringify(answer.body)}`);
    if (open) continue;
    assert.equal(answer.body.error.code, 'auth_kind_not_allowed', route.name);
    assert.match(answer.body.error.message, /does not accept a personal agent token/);
  }
});

test("a token wakes sandboxes only where its permissions and its holder's role allow it", async () => {
  for (const name of role.options) {
    const holder = await api.makeSession({ role: name });
    for (const [body, may] of [
      [{ name: 'wakes', canWake: true }, ROLE_PERMISSIONS[name].has('sandbox.wake')],
      [{ name: 'approves', canApprove: true }, false],
      [{ name: 'reads', access: 'read_only' }, false],
    ] as const) {
      const { token } = (await create(body, holder.token)).body;
      for (const verb of ['wake', 'resume']) {
        const { id } = await api.makeSandbox('stopped');
        const answer = await api.call('POST', `/v1/sandboxes/${id}/${verb}`, {
          token,
          headers: { prefer: 'respond-async' },
        });
        assert.equal(answer.status, may ? 200 : 403, `${name}, ${body.name}: ${verb}`);
        if (!may) assert.equal(answer.body.error.code, 'permission_denied');
      }
    }
  }
});

test('a wake by a token names the token and its holder in the feed', async () => {
  const { agentToken, token } = (await create({ name: 'waker', canWake: true })).body;
  const { id } = await api.makeSandbox('stopped');
  const answer = await api.call('POST', `/v1/sandboxes/${id}/wake`, { token, headers: { prefer: 'respond-async' } });
  assert.equal(answer.body.sandbox.status, 'waking');
  const [row] = await rowsAbout(id);
  assert.deepEqual(
    [row?.kind, row?.actor_kind, row?.actor_id, row?.actor_user_id],
    ['sandbox_wake_requested', 'agent_token', agentToken.id, person.userId],
  );
});

test("a token works in each of its holder's orgs with the role there, and in no other", async () => {
  const other = await api.makeOrg();
  const holder = await api.makeSession({ role: 'viewer' });
  const { token } = (await create({ name: 'two roles', canWake: true }, holder.token)).body;
  const wake = async (org: { orgId: string; projectId: string }): Promise<Answer> => {
    const { id } = await api.makeSandbox('stopped', { org_id: org.orgId, project_id: org.projectId });
    return await api.call('POST', `/v1/sandboxes/${id}/wake`, { token, headers: { prefer: 'respond-async' } });
  };
  assert.equal((await wake(other)).body.error.code, 'org_access_denied');
  await api.db
    .insertInto('membership')
    .values({ org_id: other.orgId, user_id: holder.userId, role: 'operator' })
    .execute();
  assert.equal((await wake(other)).status, 200);
  assert.equal((await wake(api)).body.error.code, 'permission_denied');
  const { orgs } = (await api.call('GET', '/v1/me/orgs', { token })).body;
  assert.deepEqual(Object.fromEntries(orgs.map((org: { id: string; role: string }) => [org.id, org.role])), {
    [api.orgId]: 'viewer',
    [other.orgId]: 'operator',
  });
  assert.equal((await api.call('GET', '/v1/me', { token })).body.id, holder.userId);
});

for (const kind of ['an API key', 'a personal agent token']) {
  test(`${kind} cannot create, list or revoke personal agent tokens`, async () => {
    const { agentToken, token: ofToken } = (await create({ name: 'caller' })).body;
    const token = kind === 'an API key' ? api.token : ofToken;
    for (const answer of [
      await create({ name: 'more' }, token),
      await api.call('GET', PATH, { token }),
      await revoke(agentToken.id, token),
    ])
      assert.deepEqual([answer.status, answer.body.error.code], [403, 'auth_kind_not_allowed']);
  });
}

test("owners and admins list the members' usable tokens, without their uses", async () => {
  const org = await api.makeOrg();
  const { userId, email } = await makePerson(api.db, { [org.orgId]: 'viewer' });
  const other = await makePerson(api.db, { [api.orgId]: 'viewer' });
  await makeAgentTokenRow(api.db, other);
  for (const ending of ['revoked', 'expired'] as const) await makeAgentTokenRow(api.db, { userId, ending });
  const { id } = await makeAgentTokenRow(api.db, { userId, canWake: true, viaSso: true });
  const admin = await signInAs(api.db, (await makePerson(api.db, { [org.orgId]: 'admin' })).userId);
  const { status, body } = await api.call('GET', `/v1/orgs/${org.orgId}/agent-tokens`, { token: admin.token });
  assert.equal(status, 200);
  assert.equal(body.agentTokens.length, 1);
  const [{ tokenPrefix, createdAt, expiresAt, ...token }] = body.agentTokens;
  assert.match(tokenPrefix, /^bat_/);
  assert.ok(createdAt < expiresAt);
  assert.deepEqual(token, {
    ...{ id, name: 'made by a test', access: 'read_send', canApprove: false, canWake: true, viaSso: true },
    ...{ userId, email, revoked: false },
  });
});

test("an org's revocation refuses a member's token in that org alone, with one entry in its feed", async () => {
  const [org, other] = [await api.makeOrg(), await api.makeOrg()];
  const { userId } = await makePerson(api.db, { [org.orgId]: 'owner', [other.orgId]: 'owner' });
  const { id, token } = await makeAgentTokenRow(api.db, { userId, canWake: true });
  const admin = await signInAs(api.db, (await makePerson(api.db, { [org.orgId]: 'admin' })).userId);
  const revokeForOrg = (tokenId: string): Promise<Answer> =>
    api.call('DELETE', `/v1/orgs/${org.orgId}/agent-tokens/${tokenId}`, { token: admin.token });
  const sessions = async ({ orgId }: { orgId: string }): Promise<number> =>
    (await api.call('GET', `/v1/agent-sessions?orgId=${orgId}`, { token })).status;
  assert.deepEqual([await sessions(org), await sessions(other)], [200, 200]);
  for (let time = 1; time <= 2; time++) {
    const { status, body } = await revokeForOrg(id);
    assert.deepEqual([status, body.agentToken.revoked], [200, true]);
  }
  assert.deepEqual([await sessions(org), await sessions(other)], [403, 200]);
  const sandbox = await api.makeSandbox('stopped', { org_id: org.orgId, project_id: org.projectId });
  const refused = await api.call('POST', `/v1/sandboxes/${sandbox.id}/wake`, { token });
  assert.equal(refused.body.error.code, 'org_access_denied');
  assert.match(refused.body.error.message, /revoked this personal agent token/);
  assert.deepEqual(
    (await rowsAbout(id)).map(({ org_id, kind, details }) => [org_id, kind, details]),
    [[org.orgId, 'agent_token_revoked', { name: 'made by a test', createdBy: userId, onlyInThisOrg: true }]],
  );
  const listed = await api.call('GET', `/v1/orgs/${org.orgId}/agent-tokens`, { token: admin.token });
  assert.deepEqual(listed.body.agentTokens, []);
  const stranger = await makeAgentTokenRow(api.db, await makePerson(api.db));
  for (const unknown of [stranger.id, newId('agentToken'), 'x'])
    assert.equal((await revokeForOrg(unknown)).body.error.code, 'agent_token_not_found');
});
