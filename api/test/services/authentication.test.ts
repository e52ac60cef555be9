// Keys over time: expiry, revocation, a creator who is gone, the note of the last use.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { sql } from 'kysely';
import { newToken, tokenSha256 } from '../../src/services/bearer-token.ts';
import { startApi, type Answer, type TestApi } from '../api.ts';

let api: TestApi;
before(async () => {
  api = await startApi({ durable: false });
});
after(() => api.close());

const me = (token: string): Promise<Answer> => api.call('GET', '/v1/me', { token });
const keyOf = (token: string) =>
  api.db.selectFrom('api_key').selectAll().where('token_sha256', '=', tokenSha256(token)).executeTakeFirstOrThrow();

test('a token is stored only as its SHA-256, with a prefix to tell it by', async () => {
  const token = await api.makeKey({});
  const rows =
    JSON.stringify(await api.db.selectFrom('api_key').selectAll().execute()) +
    JSON.stringify(await api.db.selectFrom('activity').selectAll().execute());
  assert.equal(rows.includes(token), false);
  assert.equal((await keyOf(token)).token_prefix, token.slice(0, 10));
});

test('a key with an expiry works until then and is 401 after, saying when it expired', async () => {
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

test('a token with a wrong checksum is refused without a look at the database', async () => {
  // Breaking the table makes any look a 500.
  await sql`alter table api_key rename to api_key_away`.execute(api.db);
  try {
    const wrong = newToken('api_key').replace(/.$/, (last) => (last === 'a' ? 'b' : 'a'));
    assert.equal((await me(wrong)).status, 401);
    assert.equal((await me(newToken('api_key'))).status, 500);
  } finally {
    await sql`alter table api_key_away rename to api_key`.execute(api.db);
  }
});

test('the scheme Bearer is taken in any case', async () => {
  assert.equal((await api.call('GET', '/v1/me', { token: null, headers: { authorization: `bearer ${api.token}` } })).status, 200);
});

test('the use of a key is noted, at most once a minute', async () => {
  const token = await api.makeKey({});
  assert.equal((await keyOf(token)).last_used_at, null);
  await me(token);
  let noted = (await keyOf(token)).last_used_at;
  while (noted === null) noted = (await keyOf(token)).last_used_at;
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
