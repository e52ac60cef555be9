// Sign-ins: listed and ended by their user, on every replica.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { SIGN_INS_PER_USER } from '@berth/contract/route/limits.ts';
import { sql } from 'kysely';
import { newId } from '../../../src/store/database/ids.ts';
import {
  makePerson,
  newCaller,
  post,
  signInPerson,
  startInstance,
  statusOfMe,
  type Instance,
} from '../../sign-in/client.ts';
import { signInAs, startApi, type TestApi } from '../../world/api.ts';
import { lockWaiters } from '../../world/lock-waiters.ts';
import { untilTrue } from '../../../../os/test/until.ts';

let api: TestApi;
let second: Instance;
before(async () => {
  api = await startApi({ durable: false });
  second = await startInstance(api);
});
after(async () => {
  await second.close();
  await api.close();
});

const PATH = '/v1/me/sign-ins';
const idsOf = async (token: string): Promise<string[]> =>
  (await api.call('GET', PATH, { token })).body.signIns.map(({ id }: { id: string }) => id);
const feed = () =>
  api.db
    .selectFrom('activity')
    .select(['org_id', 'subject_kind', 'subject_id', 'details'])
    .where('kind', '=', 'sign_in_ended');

test('the list shows program, address and times, newest first, and marks the current sign-in', async () => {
  const person = await makePerson(api.signIn);
  const caller = { address: '192.0.2.44', userAgent: '<b>a browser</b>' };
  const login = await api.signIn.withPassword({ email: person.email, password: person.password }, caller);
  const { token } = await api.signIn.issueSessionToken(login);
  const { loginId: other } = await signInAs(api.db, person.userId);
  const { signIns } = (await api.call('GET', PATH, { token })).body;
  assert.deepEqual(
    signIns.map(({ id, current }: never) => [id, current]),
    [
      [other, false],
      [login.loginId, true],
    ],
  );
  const { createdAt, lastUsedAt, expiresAt, ...rest } = signIns[1];
  assert.deepEqual(rest, { id: login.loginId, userAgent: caller.userAgent, address: caller.address, current: true });
  assert.equal(expiresAt, login.expiresAt.toISOString());
  assert.ok(Date.parse(createdAt) <= Date.parse(lastUsedAt));
});

test('a request records its sign-in as used, at most once a minute', async () => {
  const { userId, loginId, token } = await api.makeSession({ role: 'viewer' });
  const lastUse = async (): Promise<Date> =>
    (await api.db.selectFrom('session').select('lastUsedAt').where('id', '=', loginId).executeTakeFirstOrThrow())
      .lastUsedAt;
  const set = async (ago: string): Promise<Date> => {
    await sql`update session set "lastUsedAt" = now() - ${ago}::interval where id = ${loginId}`.execute(api.db);
    return await lastUse();
  };
  const recent = await set('30 seconds');
  assert.equal((await api.call('GET', '/v1/me', { token })).body.id, userId);
  assert.deepEqual(await lastUse(), recent);
  const old = await set('2 minutes');
  await api.call('GET', '/v1/me', { token });
  await untilTrue('the use is recorded', async () => (await lastUse()).getTime() > old.getTime());
});

test('ending a sign-in refuses its tokens on every replica and records it in the feed', async () => {
  const person = await api.makeSession({ role: 'member' });
  const phone = await signInAs(api.db, person.userId);
  const { status, body } = await api.call('DELETE', `${PATH}/${phone.loginId}`, { token: person.token });
  assert.deepEqual([status, body.signIn.id, body.signIn.current], [200, phone.loginId, false]);
  for (const { url } of [api, second]) assert.equal(await statusOfMe(url, phone.token), 401);
  assert.equal(await statusOfMe(second.url, person.token), 200);
  assert.deepEqual(await feed().where('subject_id', '=', phone.loginId).execute(), [
    { org_id: api.orgId, subject_kind: 'sign_in', subject_id: phone.loginId, details: { count: 1 } },
  ]);
  const listed = await api.call('GET', `/v1/orgs/${api.orgId}/activity?kind=sign_in_ended`);
  assert.deepEqual(
    [listed.status, listed.body.activity[0]?.subject],
    [200, { kind: 'sign_in', id: phone.loginId }],
    JSON.stringify(listed.body),
  );
  const again = await api.call('DELETE', `${PATH}/${phone.loginId}`, { token: person.token });
  assert.deepEqual([again.status, again.body.error.code], [404, 'sign_in_not_found']);
});

test('the current sign-in can end itself', async () => {
  const { loginId, token } = await api.makeSession({ role: null });
  assert.equal((await api.call('DELETE', `${PATH}/${loginId}`, { token })).body.signIn.current, true);
  assert.equal(await statusOfMe(second.url, token), 401);
});

test("another user's, an expired and a malformed sign-in are not found, and stay", async () => {
  const person = await api.makeSession({ role: 'owner' });
  const stranger = await api.makeSession({ role: 'member' });
  const expired = await signInAs(api.db, person.userId);
  await sql`update session set "expiresAt" = now() where id = ${expired.loginId}`.execute(api.db);
  for (const id of [stranger.loginId, expired.loginId, newId('signIn'), '\0', "' or true --"]) {
    const { status, body } = await api.call('DELETE', `${PATH}/${encodeURIComponent(id)}`, { token: person.token });
    assert.deepEqual([status, body.error.code], [404, 'sign_in_not_found'], id);
  }
  assert.equal(await statusOfMe(api.url, stranger.token), 200);
  assert.equal((await idsOf(person.token)).includes(expired.loginId), false);
});

test('ending all others keeps the current sign-in and those of other users', async () => {
  const person = await api.makeSession({ role: 'member' });
  const stranger = await api.makeSession({ role: 'member' });
  const others = await Promise.all([1, 2, 3].map(() => signInAs(api.db, person.userId)));
  const { status, body } = await api.call('DELETE', PATH, { token: person.token });
  assert.deepEqual([status, body], [200, { ended: 3 }]);
  for (const { token } of others) assert.equal(await statusOfMe(second.url, token), 401);
  assert.deepEqual(await idsOf(person.token), [person.loginId]);
  assert.equal(await statusOfMe(api.url, stranger.token), 200);
  assert.deepEqual((await api.call('DELETE', PATH, { token: person.token })).body, { ended: 0 });
  const rows = await feed().where('subject_id', '=', person.userId).execute();
  assert.deepEqual(
    rows.map(({ details }) => details),
    [{ count: 3 }],
  );
});

test('ending all others withdraws the approval of a device that has not signed in yet', async () => {
  const person = await makePerson(api.signIn);
  const login = await signInPerson(api.signIn, person);
  const { token } = await api.signIn.issueSessionToken(login);
  const { deviceCode, userCode } = await api.signIn.requestDevice('berth-cli', newCaller());
  await api.signIn.decideDevice(userCode, person.userId, 'approve');
  await api.call('DELETE', PATH, { token });
  await assert.rejects(second.signIn.redeemDevice({ deviceCode, clientId: 'berth-cli' }, newCaller()), {
    code: 'access_denied',
  });
});

test('two sign-ins that end all others at once leave at most one', async () => {
  const person = await api.makeSession({ role: 'member' });
  const other = await signInAs(api.db, person.userId);
  await Promise.all([person.token, other.token].map((token) => api.call('DELETE', PATH, { token })));
  const left = await api.db.selectFrom('session').select('id').where('userId', '=', person.userId).execute();
  assert.ok(left.length <= 1, JSON.stringify(left));
});

test('a user keeps the hundred most recently used sign-ins', async () => {
  const person = await makePerson(api.signIn);
  const rows = await Promise.all(Array.from({ length: SIGN_INS_PER_USER }, () => signInAs(api.db, person.userId)));
  const [oldest] = rows;
  await sql`update session set "lastUsedAt" = now() - interval '1 day' where id = ${oldest?.loginId}`.execute(api.db);
  const { loginId } = await signInPerson(api.signIn, person);
  const left = await api.db.selectFrom('session').select('id').where('userId', '=', person.userId).execute();
  assert.equal(left.length, SIGN_INS_PER_USER);
  const ids = new Set(left.map(({ id }) => id));
  assert.deepEqual([ids.has(loginId), ids.has(oldest?.loginId ?? '')], [true, false]);
});

test('a refresh token of an ended sign-in is refused', async () => {
  const person = await makePerson(api.signIn);
  const [kept, ended] = [await signInPerson(api.signIn, person), await signInPerson(api.signIn, person)];
  const { token } = await api.signIn.issueSessionToken(kept);
  await api.call('DELETE', `${PATH}/${ended.loginId}`, { token });
  const fields = { grant_type: 'refresh_token', refresh_token: ended.credential };
  const { status, body } = await post(second.url, '/auth/token', fields);
  assert.deepEqual([status, body.error], [400, 'invalid_grant']);
});

test('ending the other sign-ins while the password changes does not deadlock', async () => {
  const person = await makePerson(api.signIn);
  const kept = await signInPerson(api.signIn, person);
  await signInPerson(api.signIn, person);
  const { token } = await api.signIn.issueSessionToken(kept);
  const { userCode } = await api.signIn.requestDevice('berth-cli', newCaller());
  await api.signIn.decideDevice(userCode, person.userId, 'approve');
  const [ended, changed] = await api.db
    .transaction()
    .execute(async (trx) => {
      await trx.selectFrom('deviceCode').select('id').where('userId', '=', person.userId).forUpdate().execute();
      // The first waits for the device here, the second for the first.
      const ending = api.call('DELETE', PATH, { token });
      await untilTrue('ending waits', async () => (await lockWaiters(api.db)) === 1);
      const changing = api.signIn.setPassword(person.userId, 'another boat entirely');
      await untilTrue('the change waits', async () => (await lockWaiters(api.db)) === 2);
      return [ending, changing] as const;
    })
    .then((both) => Promise.all(both));
  assert.equal(ended.status, 200);
  assert.equal(changed, undefined);
  assert.deepEqual(await api.db.selectFrom('session').select('id').where('userId', '=', person.userId).execute(), []);
});
