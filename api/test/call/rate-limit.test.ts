// Rate limits of credentials and of addresses without one, on a clock that only tests move.
import assert from 'node:assert/strict';
import { after, before, beforeEach, test } from 'node:test';
import fc from 'fast-check';
import { sql } from 'kysely';
import { Buckets } from '../../src/call/rate-limit.ts';
import { FULL_AFTER_MS } from '../../src/rules/access/token-bucket.ts';
import { newToken, tokenSha256 } from '../../src/services/access/bearer-token.ts';
import { insertSessionToken } from '../../src/store/access/session-tokens.ts';
import { signInAs, startApi, type Answer, type TestApi } from '../world/api.ts';
import { startInstance } from '../sign-in/client.ts';

const LIMIT = 6;
/** Time between two tokens. */
const INTERVAL_MS = 60_000 / LIMIT;
const POLICY = `"default";q=${LIMIT};w=60`;

let nowMs = 1_000_000;
let api: TestApi;
before(async () => {
  api = await startApi({
    durable: false,
    settings: { requestsPerMinute: LIMIT, trustedProxies: ['127.0.0.1'] },
    now: () => nowMs,
  });
});
after(() => api.close());
// All buckets refill.
beforeEach(() => (nowMs += FULL_AFTER_MS));

const me = (token: string | null, from = '192.0.2.1'): Promise<Answer> =>
  api.call('GET', '/v1/me', { token, headers: { 'x-forwarded-for': from } });
const limitOf = ({ headers }: Answer): string | null => headers.get('ratelimit');
const assertLimited = ({ status, body, headers }: Answer, retryAfter: number): void => {
  assert.equal(status, 429);
  assert.equal(body.error.code, 'rate_limited');
  assert.equal(headers.get('retry-after'), String(retryAfter));
};
async function makeAgentToken({ token }: { token: string }): Promise<string> {
  const body = { name: 'one', access: 'read_send' };
  return (await api.call('POST', '/v1/me/agent-tokens', { token, body })).body.token;
}
/** Uses up an address's attempts with unknown tokens. */
async function guessAll(from: string): Promise<void> {
  for (let guess = 0; guess < LIMIT; guess += 1) assert.equal((await me(newToken('api_key'), from)).status, 401);
}

test('a credential gets its limit at once, then 429 with the exact seconds to wait', async () => {
  const token = await api.makeKey({});
  for (let left = LIMIT - 1; left >= 0; left -= 1) {
    const answer = await me(token);
    assert.equal(answer.status, 200);
    assert.equal(answer.headers.get('ratelimit-policy'), POLICY);
    assert.equal(limitOf(answer), `"default";r=${left};t=${10 * (LIMIT - left)}`);
  }
  const refused = await me(token);
  assertLimited(refused, INTERVAL_MS / 1_000);
  assert.match(
    refused.body.error.message,
    /with this credential: the limit is 6 per minute \(BERTH_REQUESTS_PER_MINUTE\); retry in 10 s$/,
  );
  assert.equal(limitOf(refused), '"default";r=0;t=60');
  assert.equal(refused.headers.get('ratelimit-policy'), POLICY);

  nowMs += INTERVAL_MS - 1_000;
  assertLimited(await me(token), 1);
  nowMs += 1_000;
  assert.equal((await me(token)).status, 200);
  assertLimited(await me(token), INTERVAL_MS / 1_000);
});

test('every authenticated response counts and has rate headers: success, 403, 404, 400, bad JSON', async () => {
  const token = await api.makeKey({ role: 'viewer' });
  const other = await api.makeOrg();
  const answers = [
    await me(token),
    await api.call('GET', `/v1/orgs/${other.orgId}/projects`, { token }),
    await api.call('GET', '/v1/sandboxes/sbx_aaaaaaaaaaaaaaaaaaaaaaaa', { token }),
    await api.call('POST', `/v1/orgs/${api.orgId}/sandboxes`, { token, rawBody: '{' }),
    await api.call('POST', '/v1/orgs', { token, body: { name: 'x' } }),
    await api.call('POST', `/v1/orgs/${api.orgId}/sandboxes`, { token: api.token, rawBody: '{' }),
  ];
  assert.deepEqual(
    answers.map(({ status, body }) => [status, body.error?.code]),
    [
      [200, undefined],
      [403, 'org_access_denied'],
      [404, 'sandbox_not_found'],
      [403, 'permission_denied'],
      [403, 'auth_kind_not_allowed'],
      [400, 'invalid_json'],
    ],
  );
  assert.deepEqual(
    answers.map((answer) => /r=(\d+)/.exec(limitOf(answer) ?? '')?.[1]),
    ['5', '4', '3', '2', '1', '5'],
  );
});

test('the rate limit is checked first, so that refused requests are limited too', async () => {
  const token = await api.makeKey({ scopes: [] });
  for (let call = 0; call < LIMIT; call += 1)
    assert.equal((await api.call('GET', `/v1/orgs/${api.orgId}/projects`, { token })).status, 403);

  assertLimited(await api.call('GET', `/v1/orgs/${api.orgId}/projects`, { token }), 10);
});

test('concurrent requests pass exactly up to the limit', async () => {
  const token = await api.makeKey({});
  const answers = await Promise.all(Array.from({ length: 5 * LIMIT }, () => me(token)));
  assert.equal(answers.filter(({ status }) => status === 200).length, LIMIT);
  assert.equal(answers.filter(({ status }) => status === 429).length, 4 * LIMIT);
});

test('each API key has its own limit, as have the sign-ins of a user, and the agent tokens; HEAD counts', async () => {
  const [one, other] = [await api.makeKey({}), await api.makeKey({})];
  const session = await api.makeSession({ role: 'member' });
  const agent = await makeAgentToken(session);
  for (let call = 0; call < LIMIT; call += 1) await api.call('HEAD', '/v1/me', { token: one });
  assertLimited(await me(one), 10);
  for (const token of [other, session.token, agent]) assert.notEqual((await me(token)).status, 429);
});

test('a user gains no requests by further sign-ins, refreshed tokens or agent tokens', async () => {
  const session = await api.makeSession({ role: 'member' });
  const agents = [await makeAgentToken(session), await makeAgentToken(session)];
  const { userId } = session;
  for (let call = 2; call < LIMIT; call += 1) assert.equal((await me(session.token)).status, 200);
  const refreshed = newToken('session');
  await insertSessionToken(api.db, {
    loginId: session.loginId,
    userId,
    tokenSha256: tokenSha256(refreshed),
    minutes: 60,
  });
  assertLimited(await me(refreshed), 10);
  assertLimited(await me((await signInAs(api.db, userId)).token), 10);
  // In sequence: concurrent first uses of a token count as guesses of its address.
  for (let call = 0; call < LIMIT; call += 1) assert.equal((await me(agents[call % 2] ?? null)).status, 200);
  for (const token of agents) {
    const refused = await me(token);
    assertLimited(refused, 10);
    assert.match(refused.body.error.message, /^too many requests with this credential/);
  }
});

test('each instance counts separately', async () => {
  const token = await api.makeKey({});
  for (let call = 0; call < LIMIT; call += 1) assert.equal((await me(token)).status, 200);
  assertLimited(await me(token), 10);
  const instance = await startInstance(api);
  try {
    const { status } = await fetch(`${instance.url}/v1/me`, { headers: { authorization: `Bearer ${token}` } });
    assert.equal(status, 200);
  } finally {
    await instance.close();
  }
});

test('the health check and paths that do not exist are not counted', async () => {
  for (let call = 0; call < 3 * LIMIT; call += 1) {
    const health = await api.call('GET', '/health', { token: null });
    assert.equal(health.status, 200);
    assert.equal(limitOf(health), null);
    assert.equal((await api.call('GET', '/v1/nothing', { token: null })).status, 404);
  }
});

for (const [what, presented] of [
  ['no token', () => null],
  ['a token that cannot be one', () => 'ghp_0123456789'],
  ['a well-formed token that nobody has', () => newToken('api_key')],
] as const) {
  test(`after a credential's limit of requests with ${what} the address gets 429 with Retry-After`, async () => {
    const from = `198.51.100.${String(what.length)}`;
    for (let call = 0; call < LIMIT; call += 1) assert.equal((await me(presented(), from)).status, 401);
    const refused = await me(presented(), from);
    assertLimited(refused, 10);
    assert.equal(limitOf(refused), null);
    assert.match(refused.body.error.message, /without a valid credential from this address/);
    assert.equal((await me(presented(), '198.51.100.250')).status, 401);
    nowMs += 10_000;
    assert.equal((await me(presented(), from)).status, 401);
  });
}

test('requests without a token, as pages send them, lock no credential at the address out', async () => {
  const from = '203.0.113.6';
  for (let call = 0; call <= LIMIT; call += 1) await me(null, from);
  assertLimited(await me(null, from), 10);
  assert.equal((await me(await api.makeKey({}), from)).status, 200);
});

test('concurrent guesses reach the database up to the limit and then never', async () => {
  const from = '203.0.113.1';
  const answers = await Promise.all(Array.from({ length: 5 * LIMIT }, () => me(newToken('api_key'), from)));
  assert.equal(answers.filter(({ status }) => status === 401).length, LIMIT);
  // A missing table turns every query into a 500.
  await sql`alter table api_key rename to api_key_away`.execute(api.db);
  try {
    assertLimited(await me(newToken('api_key'), from), 10);
  } finally {
    await sql`alter table api_key_away rename to api_key`.execute(api.db);
  }
});

test('a database failure does not count as a guess', async () => {
  const from = '203.0.113.2';
  await sql`alter table api_key rename to api_key_away`.execute(api.db);
  try {
    for (let call = 0; call < 2 * LIMIT; call += 1) assert.equal((await me(newToken('api_key'), from)).status, 500);
  } finally {
    await sql`alter table api_key_away rename to api_key`.execute(api.db);
  }
  assert.equal((await me(newToken('api_key'), from)).status, 401);
});

test('known callers of a blocked address continue; a new credential has to wait', async () => {
  const from = '203.0.113.3';
  const [known, unseen] = [await api.makeKey({}), await api.makeKey({})];
  assert.equal((await me(known, from)).status, 200);
  await guessAll(from);
  assert.equal((await me(known, from)).status, 200);
  assertLimited(await me(unseen, from), 10);
  assert.equal((await me(unseen, '203.0.113.4')).status, 200);
});

test('a revoked known credential is 401 once, then counts as a guess', async () => {
  const from = '203.0.113.5';
  const token = await api.makeKey({});
  assert.equal((await me(token, from)).status, 200);
  await guessAll(from);
  await api.db
    .updateTable('api_key')
    .set({ revoked_at: sql<Date>`now()` })
    .where('token_sha256', '=', tokenSha256(token))
    .execute();
  assert.equal((await me(token, from)).status, 401);
  assertLimited(await me(token, from), 10);
});

test('valid credentials never count as guesses, however many call concurrently', async () => {
  const from = '203.0.113.6';
  const tokens = await Promise.all(Array.from({ length: LIMIT }, () => api.makeKey({})));
  for (let round = 0; round < 2; round += 1) {
    const answers = await Promise.all(tokens.map((token) => me(token, from)));
    assert.deepEqual(new Set(answers.map(({ status }) => status)), new Set([200]));
  }
  await guessAll(from);
});

test('X-Forwarded-For counts only from a trusted proxy', async () => {
  const direct = await startApi({ durable: false, settings: { requestsPerMinute: LIMIT }, now: () => nowMs });
  try {
    const statuses: number[] = [];
    for (let call = 0; call <= LIMIT; call += 1) {
      const headers = { 'x-forwarded-for': `192.0.2.${call}`, forwarded: `for=192.0.2.${call}` };
      statuses.push((await direct.call('GET', '/v1/me', { token: null, headers })).status);
    }
    assert.deepEqual(statuses, [...Array.from({ length: LIMIT }, () => 401), 429]);
  } finally {
    await direct.close();
  }
});

test('any address text from a trusted proxy is counted', async () => {
  for (const from of ['no address', '192.0.2.9:5123', '[2001:db8::1]:443', ',', '"', 'x'.repeat(5_000), '1, 2, 3']) {
    for (let call = 0; call < LIMIT; call += 1) assert.equal((await me(null, from)).status, 401, from);
    assertLimited(await me(null, from), 10);
    nowMs += FULL_AFTER_MS;
  }
});

test('full buckets are dropped, and the number of buckets is bounded', () => {
  let now = 0;
  const buckets = new Buckets({ perMinute: 10, now: () => now, maxBuckets: 50 });
  for (let caller = 0; caller < 40; caller += 1) buckets.take(`caller ${caller}`);
  assert.equal(buckets.size, 40);
  now += FULL_AFTER_MS;
  for (let call = 0; call < 40; call += 1) buckets.take('another');
  assert.equal(buckets.size, 1);
  fc.assert(
    fc.property(
      fc.array(fc.tuple(fc.integer({ min: 0, max: 500 }), fc.integer({ min: 0, max: 2_000 })), { maxLength: 500 }),
      (calls) => {
        for (const [caller, pauseMs] of calls) {
          now += pauseMs;
          buckets.take(`caller ${caller}`);
          assert.ok(buckets.size <= 50);
        }
      },
    ),
  );
});

test('dropping buckets gives no caller an extra token', () => {
  const calls = fc.array(fc.tuple(fc.integer({ min: 0, max: 5 }), fc.integer({ min: 0, max: 40_000 })), {
    maxLength: 200,
  });
  fc.assert(
    fc.property(calls, (given) => {
      let now = 0;
      const together = new Buckets({ perMinute: 3, now: () => now });
      const alone = new Map<number, Buckets>();
      for (const [caller, pauseMs] of given) {
        now += pauseMs;
        const own = alone.get(caller) ?? new Buckets({ perMinute: 3, now: () => now });
        alone.set(caller, own);
        assert.deepEqual(together.take(String(caller)), own.take('only'));
      }
    }),
  );
});
