// Rate limit of all credentials of an org together, on a clock that only tests move.
import assert from 'node:assert/strict';
import { after, before, beforeEach, test } from 'node:test';
import { FULL_AFTER_MS } from '../../src/rules/access/token-bucket.ts';
import { tokenSha256 } from '../../src/services/access/bearer-token.ts';
import { startApi, type Answer, type TestApi } from '../world/api.ts';

const LIMIT = 6;
const ORG_LIMIT = 20;

let nowMs = 1_000_000;
let api: TestApi;
before(async () => {
  const settings = { requestsPerMinute: LIMIT, orgRequestsPerMinute: ORG_LIMIT, trustedProxies: ['127.0.0.1'] };
  api = await startApi({ durable: false, settings, now: () => nowMs });
});
after(() => api.close());
// All buckets refill.
beforeEach(() => (nowMs += FULL_AFTER_MS));

/** Each call from another address, since new credentials share the attempts of theirs. */
let calls = 0;
const get = (token: string, path: string): Promise<Answer> => {
  calls += 1;
  const headers = { 'x-forwarded-for': `10.0.${calls >> 8}.${calls & 255}` };
  return api.call('GET', path, { token, headers });
};
const projects = (token: string, orgId = api.orgId): Promise<Answer> => get(token, `/v1/orgs/${orgId}/projects`);
const keys = (count: number): Promise<string[]> => Promise.all(Array.from({ length: count }, () => api.makeKey({})));
const assertOrgLimited = ({ status, body, headers }: Answer): void => {
  assert.deepEqual([status, body.error.code, headers.get('retry-after')], [429, 'rate_limited', '3']);
  assert.equal(
    body.error.message,
    'too many requests of this org: the limit is 20 per minute for all its credentials ' +
      '(BERTH_ORG_REQUESTS_PER_MINUTE); retry in 3 s',
  );
};

/** Ends the membership of the key's creator. */
async function removeHolder(key: string): Promise<void> {
  const { created_by: userId } = await api.db
    .selectFrom('api_key')
    .select('created_by')
    .where('token_sha256', '=', tokenSha256(key))
    .executeTakeFirstOrThrow();
  await api.db.deleteFrom('membership').where('user_id', '=', userId).execute();
}

/** Uses up the org's requests with keys of its own. */
async function exhaust(): Promise<void> {
  const answers = await Promise.all((await keys(4)).flatMap((key) => Array.from({ length: 5 }, () => projects(key))));
  assert.ok(answers.every(({ status }) => status === 200));
}

test('an org with thirty keys gets the requests of the org, not thirty times those of a key', async () => {
  const answers = await Promise.all((await keys(30)).flatMap((key) => [projects(key), projects(key), projects(key)]));
  assert.equal(answers.filter(({ status }) => status === 200).length, ORG_LIMIT);
  const refused = answers.filter(({ status }) => status !== 200);
  assert.equal(refused.length, 90 - ORG_LIMIT);
  for (const answer of refused) assertOrgLimited(answer);
});

test('keys and sign-ins of an org share its requests; other orgs keep theirs', async () => {
  const session = await api.makeSession({ role: 'member' });
  const other = await api.makeOrg();
  await exhaust();
  const [key = ''] = await keys(1);
  assertOrgLimited(await projects(key));
  assertOrgLimited(await projects(session.token));
  assertOrgLimited(await get(key, '/v1/me'));
  assert.equal((await projects(other.token, other.orgId)).status, 200);
  // Names no org.
  assert.equal((await get(session.token, '/v1/me')).status, 200);
  nowMs += 3_000;
  assert.equal((await projects(key)).status, 200);
  assertOrgLimited(await projects(key));
});

test("strangers cannot use up an org's requests, with their paths or their own limit", async () => {
  const other = await api.makeOrg();
  const stranger = await api.makeSession({ role: null });
  const tries = Array.from({ length: LIMIT }, () => [
    projects(other.token),
    projects(stranger.token),
    get(other.token, '/v1/sandboxes/sbx_aaaaaaaaaaaaaaaaaaaaaaaa'),
  ]);
  const removed = await api.makeKey({ role: 'admin' });
  await removeHolder(removed);
  tries.push(Array.from({ length: LIMIT }, () => projects(removed)));
  const answers = await Promise.all(tries.flat());
  assert.ok(answers.every(({ status }) => status === 403 || status === 404 || status === 429));
  await exhaust();
});

test('a refusal for the org costs the credential nothing, and a key over its limit costs the org nothing', async () => {
  const [key = '', busy = ''] = await keys(2);
  for (let call = 0; call < 3 * LIMIT; call += 1) await projects(busy);
  const spent = await Promise.all((await keys(7)).flatMap((one) => [projects(one), projects(one)]));
  assert.ok(
    spent.every(({ status }) => status === 200),
    'the org has all requests but those of the busy key',
  );
  for (let call = 0; call < 2 * LIMIT; call += 1) assertOrgLimited(await projects(key));
  nowMs += 3_000 * LIMIT;
  for (let call = 0; call < LIMIT; call += 1) assert.equal((await projects(key)).status, 200);
});

test('the same limit applies to calls without HTTP', async () => {
  await exhaust();
  const [key = ''] = await keys(1);
  assertOrgLimited(await api.callDirectly('GET', `/v1/orgs/${api.orgId}/projects`, { token: key }));
});
