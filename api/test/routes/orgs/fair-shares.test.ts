// Limits of orgs per user, and of projects and API keys per org, also with concurrent calls.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { plan, SELF_HOSTED_PLAN } from '@berth/contract/billing/plans.ts';
import { AGENT_TOKENS_PER_HOUR, ENDED_CREDENTIALS_KEPT } from '@berth/contract/route/limits.ts';
import { sql } from 'kysely';
import { startApi, type Answer, type TestApi, type TestSession } from '../../world/api.ts';

const SHARES = { orgsPerUser: 4, projectsPerOrg: 5, apiKeysPerOrg: 6, agentTokensPerUser: 7 };

const PLAN = plan.parse({
  ...SELF_HOSTED_PLAN,
  id: 'small',
  name: 'Small',
  orgs: 2,
  projects: 2,
  apiKeys: 3,
});
const LARGE = plan.parse({ ...PLAN, id: 'large', name: 'Large', orgs: 6 });

let api: TestApi;
before(async () => {
  api = await startApi({ durable: false, settings: { shares: SHARES }, plans: [PLAN, LARGE] });
});
after(() => api.close());

const person = (): Promise<TestSession> => api.makeSession({ role: null });
const makeOrg = ({ token }: TestSession): Promise<Answer> =>
  api.call('POST', '/v1/orgs', { token, body: { name: 'o' } });
const orgOf = async (owner: TestSession): Promise<string> => (await makeOrg(owner)).body.org.id;
const makeProject = (orgId: string, { token }: TestSession): Promise<Answer> =>
  api.call('POST', `/v1/orgs/${orgId}/projects`, { token, body: {} });
const makeKey = (orgId: string, { token }: TestSession, body: object = {}): Promise<Answer> =>
  api.call('POST', `/v1/orgs/${orgId}/api-keys`, { token, body: { name: 'k', ...body } });

/** Exactly `allowed` concurrent calls succeed; the others name limit and remedy. */
async function assertAllowed(
  allowed: number,
  code: string,
  message: RegExp,
  call: () => Promise<Answer>,
): Promise<void> {
  const answers = await Promise.all(Array.from({ length: 3 * allowed + 3 }, call));
  assert.equal(answers.filter(({ status }) => status === 201).length, allowed);
  for (const { status, body } of answers.filter((answer) => answer.status !== 201)) {
    assert.deepEqual([status, body.error.code], [409, code]);
    assert.match(body.error.message, message);
  }
}

test('a user creates at most the limit of orgs, also concurrently; handing them over frees no place', async () => {
  const [one, other] = [await person(), await person()];
  const message = /^you have created 4 orgs, the maximum for a user; .*BERTH_ORGS_PER_USER/;
  await assertAllowed(SHARES.orgsPerUser, 'org_limit', message, () => makeOrg(one));
  const { orgs } = (await api.call('GET', '/v1/me/orgs', { token: one.token })).body;
  assert.equal(orgs.length, SHARES.orgsPerUser);
  for (const { id } of orgs) {
    await api.db.insertInto('membership').values({ org_id: id, user_id: other.userId, role: 'owner' }).execute();
    assert.equal((await api.call('DELETE', `/v1/me/orgs/${id}`, { token: one.token })).status, 200);
  }
  assert.equal((await makeOrg(one)).body.error.code, 'org_limit');
  assert.equal((await makeOrg(other)).status, 201, 'orgs that others created do not count');
});

test("the most generous plan of a user's orgs sets how many orgs they create", async () => {
  const [one, other] = [await person(), await person()];
  const [first, second] = [await orgOf(one), await orgOf(one)];
  const choose = async (orgId: string, changes: { plan?: string; status?: 'canceled' }): Promise<void> =>
    void (await api.db.updateTable('subscription').set(changes).where('org_id', '=', orgId).execute());
  for (const orgId of [first, second]) await choose(orgId, { plan: PLAN.id });
  assert.equal(
    (await makeOrg(one)).body.error.message,
    'you have created 2 orgs, the maximum for a user; choose a plan with more: the plan Small (small) allows 2',
  );
  await choose(second, { plan: LARGE.id });
  await assertAllowed(4, 'org_limit', /^you have created 6 orgs, .* the plan Large \(large\) allows 6$/, () =>
    makeOrg(one),
  );
  await choose(second, { status: 'canceled' });
  assert.match((await makeOrg(one)).body.error.message, /^you have created 4 orgs, .*BERTH_ORGS_PER_USER/);
  const invited = await person();
  await api.db.insertInto('membership').values({ org_id: first, user_id: invited.userId, role: 'owner' }).execute();
  await assertAllowed(SHARES.orgsPerUser, 'org_limit', /^you have created 4 orgs/, () => makeOrg(invited));
  assert.equal((await makeOrg(other)).status, 201);
});

test('an org has at most the limit of projects, also concurrently; a deleted one frees its place', async () => {
  const owner = await person();
  const [orgId, second] = [await orgOf(owner), await orgOf(owner)];
  const message = /^the org has 5 projects, the maximum; delete some, .*BERTH_PROJECTS_PER_ORG/;
  await assertAllowed(SHARES.projectsPerOrg, 'project_limit', message, () => makeProject(orgId, owner));
  assert.equal((await makeProject(second, owner)).status, 201, 'each org has its own limit');
  const { token: key } = (await makeKey(orgId, owner)).body;
  const byKey = await api.call('POST', `/v1/orgs/${orgId}/projects`, { token: key, body: {} });
  assert.equal(byKey.body.error.code, 'project_limit');
  const [{ id }] = (await api.call('GET', `/v1/orgs/${orgId}/projects`, { token: owner.token })).body.projects;
  await api.call('DELETE', `/v1/orgs/${orgId}/projects/${id}`, { token: owner.token });
  await assertAllowed(1, 'project_limit', message, () => makeProject(orgId, owner));
});

test('an org has at most the limit of usable keys, also concurrently; ended ones free theirs', async () => {
  const owner = await person();
  const orgId = await orgOf(owner);
  const message = /^the org has 6 usable API keys, the maximum; revoke some, .*BERTH_API_KEYS_PER_ORG/;
  const makeOwn = (): Promise<Answer> => makeKey(orgId, owner, { expiresInDays: 1 });
  await assertAllowed(SHARES.apiKeysPerOrg, 'api_key_limit', message, makeOwn);
  const { apiKeys } = (await api.call('GET', `/v1/orgs/${orgId}/api-keys`, { token: owner.token })).body;
  await api.call('DELETE', `/v1/orgs/${orgId}/api-keys/${apiKeys[0].id}`, { token: owner.token });
  await assertAllowed(1, 'api_key_limit', message, () => makeKey(orgId, owner));
  await api.db
    .updateTable('api_key')
    .set({ expires_at: new Date(Date.now() - 1_000) })
    .where('id', '=', apiKeys[1].id)
    .execute();
  await assertAllowed(1, 'api_key_limit', message, () => makeKey(orgId, owner));
});

test('a plan sets its own limits of projects and keys, named by the refusal', async () => {
  const owner = await person();
  const orgId = await orgOf(owner);
  for (let made = 0; made < 3; made += 1) await makeProject(orgId, owner);
  const choose = async (changes: { plan?: string; status?: 'active' | 'canceled' }): Promise<void> =>
    void (await api.db.updateTable('subscription').set(changes).where('org_id', '=', orgId).execute());
  await choose({ plan: PLAN.id });
  const { body } = await makeProject(orgId, owner);
  assert.equal(body.error.code, 'project_limit');
  assert.equal(
    body.error.message,
    'the org has 3 projects, the maximum; delete some, or choose a plan with more: the plan Small (small) allows 2',
  );
  const message = /^the org has 3 usable API keys, .* the plan Small \(small\) allows 3$/;
  await assertAllowed(PLAN.apiKeys ?? 0, 'api_key_limit', message, () => makeKey(orgId, owner));
  await choose({ status: 'canceled' });
  assert.equal((await makeProject(orgId, owner)).status, 201, 'without a plan the configuration applies');
});

test('a user has at most the limit of usable agent tokens, also concurrently; ended ones free theirs', async () => {
  const holder = await person();
  const makeToken = (): Promise<Answer> =>
    api.call('POST', '/v1/me/agent-tokens', { token: holder.token, body: { name: 't' } });
  const message = /^you have 7 usable agent tokens, the maximum for a user; revoke some, .*BERTH_AGENT_TOKENS_PER_USER/;
  await assertAllowed(SHARES.agentTokensPerUser, 'agent_token_limit', message, makeToken);
  const { agentTokens } = (await api.call('GET', '/v1/me/agent-tokens', { token: holder.token })).body;
  await api.call('DELETE', `/v1/me/agent-tokens/${agentTokens[0].id}`, { token: holder.token });
  await assertAllowed(1, 'agent_token_limit', message, makeToken);
});

test('a user creates at most 60 agent tokens within an hour, revoked ones included', async () => {
  const holder = await person();
  const makeToken = (): Promise<Answer> =>
    api.call('POST', '/v1/me/agent-tokens', { token: holder.token, body: { name: 't' } });
  for (let made = 0; made < AGENT_TOKENS_PER_HOUR; made += 1) {
    const { agentToken } = (await makeToken()).body;
    await api.call('DELETE', `/v1/me/agent-tokens/${agentToken.id}`, { token: holder.token });
  }
  const { status, body, headers } = await makeToken();
  assert.deepEqual([status, body.error.code, headers.get('retry-after')], [429, 'rate_limited', '60']);
  assert.match(body.error.message, /at most 60 agent tokens within an hour/);
});

test('lists show the newest 1,000 ended credentials; a create deletes older ones', async () => {
  const owner = await person();
  const orgId = await orgOf(owner);
  const many = ENDED_CREDENTIALS_KEPT + 5;
  await sql`insert into api_key (id, org_id, created_by, name, token_sha256, token_prefix, created_at, revoked_at)
    select 'key_old' || n, ${orgId}, ${owner.userId}, n, sha256(('key' || n)::bytea), 'brt_x',
      now() - interval '1 day' + n * interval '1 second', now() from generate_series(1, ${many}::int) n`.execute(
    api.db,
  );
  await sql`insert into agent_token (id, user_id, name, token_sha256, token_prefix, access, can_approve, can_wake,
      created_at, expires_at)
    select 'agt_old' || n, ${owner.userId}, n, sha256(('agent' || n)::bytea), 'bat_x', 'read_only', false, false,
      now() - interval '1 day' + n * interval '1 second', now() - interval '1 second'
    from generate_series(1, ${many}::int) n`.execute(api.db);
  await makeKey(orgId, owner);
  await api.call('POST', '/v1/me/agent-tokens', { token: owner.token, body: { name: 't' } });
  for (const [path, name] of [
    [`/v1/orgs/${orgId}/api-keys`, 'apiKeys'],
    ['/v1/me/agent-tokens', 'agentTokens'],
  ] as const) {
    const listed: { name: string }[] = (await api.call('GET', path, { token: owner.token })).body[name];
    assert.deepEqual([listed.length, listed.at(-1)?.name], [ENDED_CREDENTIALS_KEPT + 1, '6'], name);
  }
});

test('concurrent creates of projects, keys, invitations and memberships in an org all end', async () => {
  const owner = await person();
  const orgId = await orgOf(owner);
  const { userId } = await api.makeSession({ role: null });
  await api.db.insertInto('membership').values({ org_id: orgId, user_id: userId, role: 'member' }).execute();
  const changeRole = (role: string): Promise<Answer> =>
    api.call('PATCH', `/v1/orgs/${orgId}/members/${userId}`, { token: owner.token, body: { role } });
  const invite = (role: string): Promise<Answer> => {
    const body = { email: `${role}@invited.example.test`, role };
    return api.call('POST', `/v1/orgs/${orgId}/invitations`, { token: owner.token, body });
  };
  const answers = await Promise.all(
    ['admin', 'member', 'viewer', 'operator'].flatMap((role) => [
      changeRole(role),
      makeProject(orgId, owner),
      makeKey(orgId, owner),
      invite(role),
      makeOrg(owner),
    ]),
  );
  assert.ok(answers.every(({ status }) => [200, 201, 409].includes(status)));
});
