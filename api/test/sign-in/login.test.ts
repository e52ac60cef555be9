// Logins: by password, refreshed, extended, ended; validity of their credentials and access tokens
// on every instance.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { sql } from 'kysely';
import { deleteLoginsOfUser, putPassword } from '../../src/store/people/sign-in.ts';
import { startApi, type TestApi } from '../world/api.ts';
import { untilTrue } from '../../../os/test/until.ts';
import {
  makePerson,
  newCaller,
  PASSWORD,
  post,
  refusedWith,
  signInPerson,
  startInstance,
  statusOfMe,
  type AuthAnswer,
  type Instance,
} from './client.ts';

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

const refresh = async (refreshToken: string, url = api.url, more: Record<string, string> = {}): Promise<AuthAnswer> =>
  await post(url, '/auth/token', { grant_type: 'refresh_token', refresh_token: refreshToken, ...more });
const expiryOf = async (loginId: string): Promise<number> =>
  (
    await api.db.selectFrom('session').select('expiresAt').where('id', '=', loginId).executeTakeFirstOrThrow()
  ).expiresAt.getTime();
const DAY_MS = 86_400_000;

test('the right password signs in with any case of the address', async () => {
  const person = await makePerson(api.signIn);
  const login = await api.signIn.withPassword(
    { email: ` ${person.email.toUpperCase()} `, password: PASSWORD },
    newCaller(),
  );
  assert.equal(login.userId, person.userId);
  assert.deepEqual(await second.signIn.findLogin(login.credential), { loginId: login.loginId, userId: person.userId });
  assert.match(login.loginId, /^sgn_[a-z2-7]{24}$/);
  assert.match(login.credential, /^[\w.-]+$/);
});

test('a wrong password, an unknown address and a passwordless account get the same refusal', async () => {
  const person = await makePerson(api.signIn);
  const { email: withoutPassword } = await api.makeSession({ role: 'viewer' });
  const messages = new Set<string>();
  for (const [email, password] of [
    [person.email, 'wrong'],
    [person.email, ''],
    [person.email, `${PASSWORD} `],
    [person.email, PASSWORD.repeat(1_000)],
    ['nobody@example.test', PASSWORD],
    [withoutPassword, PASSWORD],
    ['\0', PASSWORD],
    ['no address', '\0'],
  ] as const) {
    await assert.rejects(api.signIn.withPassword({ email, password }, newCaller()), (error: Error) => {
      messages.add(error.message);
      return refusedWith('wrong_credentials')(error as never);
    });
  }
  assert.deepEqual([...messages], ['the email address or the password is wrong']);
});

test('an unverified account is told so only with the right password', async () => {
  const { email } = await makePerson(api.signIn, { emailVerified: false });
  await assert.rejects(
    api.signIn.withPassword({ email, password: 'wrong' }, newCaller()),
    refusedWith('wrong_credentials'),
  );
  await assert.rejects(
    api.signIn.withPassword({ email, password: PASSWORD }, newCaller()),
    refusedWith('email_not_verified'),
  );
});

test('a password has 12 to 128 characters of any kind; others are refused with the bounds', async () => {
  const { userId, email } = await makePerson(api.signIn);
  for (const password of ['', 'x'.repeat(11), 'x'.repeat(129), '🔑'.repeat(11), '🔑'.repeat(129)]) {
    await assert.rejects(api.signIn.setPassword(userId, password), (error: Error) => {
      assert.match(error.message, /12 to 128 characters/);
      return refusedWith('password_unfit')(error as never);
    });
    await assert.rejects(
      api.signIn.createAccount({ email: 'short@example.test', name: 'S', password, emailVerified: true }),
      refusedWith('password_unfit'),
    );
  }
  for (const password of ['x'.repeat(12), 'x'.repeat(128), '🔑'.repeat(12), '🔑'.repeat(128)]) {
    await api.signIn.setPassword(userId, password);
    assert.equal((await api.signIn.withPassword({ email, password }, newCaller())).userId, userId);
  }
});

test('concurrent sign-ups for one address create one account with its password', async () => {
  const account = { email: 'Same@Example.test', name: 'Same', password: PASSWORD, emailVerified: true };
  const made = await Promise.allSettled(
    Array.from({ length: 6 }, (_, index) => (index % 2 === 0 ? api : second).signIn.createAccount(account)),
  );
  const [userId, ...others] = made.flatMap((result) => (result.status === 'fulfilled' ? [result.value.userId] : []));
  assert.deepEqual(others, []);
  for (const result of made) if (result.status === 'rejected') refusedWith('email_taken')(result.reason);
  assert.equal((await signInPerson(api.signIn, { ...account, userId: '' })).userId, userId);
  const { count } = await api.db
    .selectFrom('account')
    .select((eb) => eb.fn.countAll<string>().as('count'))
    .where('userId', '=', userId ?? '')
    .executeTakeFirstOrThrow();
  assert.equal(count, '1');
});

test('an account and password of a rolled-back transaction do not exist', async () => {
  const person = await makePerson(api.signIn);
  const abandoned = api.db.transaction().execute(async (trx) => {
    await api.signIn.setPassword(person.userId, 'another password', trx);
    await api.signIn.createAccount(
      { email: 'never@example.test', name: 'N', password: PASSWORD, emailVerified: true },
      trx,
    );
    throw new Error('abandoned');
  });
  await assert.rejects(abandoned, /abandoned/);
  assert.equal((await signInPerson(api.signIn, person)).userId, person.userId);
  await assert.rejects(
    signInPerson(api.signIn, { ...person, email: 'never@example.test' }),
    refusedWith('wrong_credentials'),
  );
});

test("a new password ends all logins of the user; other users' logins stay", async () => {
  const person = await makePerson(api.signIn);
  const other = await signInPerson(api.signIn, await makePerson(api.signIn));
  const login = await signInPerson(api.signIn, person);
  const { token } = await api.signIn.issueSessionToken(login);
  await second.signIn.setPassword(person.userId, 'a new password, at last');
  assert.equal(await api.signIn.findLogin(login.credential), null);
  assert.equal(await statusOfMe(api.url, token), 401);
  assert.notEqual(await api.signIn.findLogin(other.credential), null);
  await assert.rejects(signInPerson(api.signIn, person), refusedWith('wrong_credentials'));
  assert.equal(
    (await signInPerson(api.signIn, { ...person, password: 'a new password, at last' })).userId,
    person.userId,
  );
});

test('no login with the old password survives a new password set concurrently', async () => {
  const person = await makePerson(api.signIn);
  const waiting = async (): Promise<boolean> =>
    (
      await sql`select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`.execute(
        api.db,
      )
    ).rows.length > 0;
  let signingIn: Promise<unknown> = Promise.resolve();
  await api.db.transaction().execute(async (trx) => {
    await putPassword(trx, person.userId, 'the hash of another password');
    await deleteLoginsOfUser(trx, person.userId);
    // Sees the old password, still in force, and creates a login that the deletion above has not
    // seen.
    signingIn = assert.rejects(signInPerson(second.signIn, person), refusedWith('wrong_credentials'));
    await untilTrue('the sign-in waits for the new password', waiting);
  });
  await signingIn;
  const left = await api.db.selectFrom('session').select('id').where('userId', '=', person.userId).execute();
  assert.deepEqual(left, []);
});

test('a refresh returns another access token of the login; earlier ones stay valid', async () => {
  const login = await signInPerson(api.signIn, await makePerson(api.signIn));
  const { status, body: first } = await refresh(login.credential);
  assert.equal(status, 200);
  assert.deepEqual([first.token_type, first.expires_in], ['Bearer', 3_600]);
  const { body: next } = await refresh(first.refresh_token, second.url, { client_id: 'berth-cli' });
  assert.notEqual(next.access_token, first.access_token);
  assert.deepEqual(
    [await statusOfMe(second.url, first.access_token), await statusOfMe(api.url, next.access_token)],
    [200, 200],
  );
});

test('a login lasts thirty days from its last refresh, which alone extends it', async () => {
  const login = await signInPerson(api.signIn, await makePerson(api.signIn));
  assert.ok(Math.abs(login.expiresAt.getTime() - Date.now() - 30 * DAY_MS) < 60_000);
  await sql`update "session" set "expiresAt" = "expiresAt" - interval '2 days' where id = ${login.loginId}`.execute(
    api.db,
  );
  const shortened = await expiryOf(login.loginId);
  const { token } = await api.signIn.issueSessionToken(login);
  await statusOfMe(api.url, token);
  await api.signIn.findLogin(login.credential);
  assert.equal(await expiryOf(login.loginId), shortened);
  await refresh(login.credential);
  assert.ok((await expiryOf(login.loginId)) > shortened + DAY_MS);
});

test('an expired login cannot refresh, and its access tokens are invalid', async () => {
  const login = await signInPerson(api.signIn, await makePerson(api.signIn));
  const { token } = await api.signIn.issueSessionToken(login);
  await sql`update "session" set "expiresAt" = now() - interval '1 second' where id = ${login.loginId}`.execute(api.db);
  assert.equal(await statusOfMe(api.url, token), 401);
  const { status, body } = await refresh(login.credential);
  assert.deepEqual([status, body.error], [400, 'invalid_grant']);
});

test('a malformed, truncated or wrongly signed refresh token is refused', async () => {
  const login = await signInPerson(api.signIn, await makePerson(api.signIn));
  const other = await signInPerson(api.signIn, await makePerson(api.signIn));
  const [token, mac] = login.credential.split('.');
  const stored = await api.db
    .selectFrom('session')
    .select('token')
    .where('id', '=', login.loginId)
    .executeTakeFirstOrThrow();
  for (const guess of [
    'x',
    stored.token,
    `${token}.`,
    `${token}.${'A'.repeat(43)}`,
    login.credential.slice(0, -1),
    `${login.credential}A`,
    `${token}.${other.credential.split('.')[1]}`,
    `${other.credential.split('.')[0]}.${mac}`,
    `${token}.${mac}.${mac}`,
    'x'.repeat(4_000),
  ]) {
    const { status, body } = await refresh(guess);
    assert.deepEqual([status, body.error], [400, 'invalid_grant'], guess);
    assert.equal(await api.signIn.findLogin(guess), null);
  }
});

for (const held of ['refresh token', 'session token'] as const) {
  test(`revoking with the ${held} ends the login and its access tokens on every instance at once`, async () => {
    const person = await makePerson(api.signIn);
    const login = await signInPerson(api.signIn, person);
    const elsewhere = await signInPerson(api.signIn, person);
    const tokens = await Promise.all(Array.from({ length: 5 }, () => api.signIn.issueSessionToken(login)));
    const kept = await api.signIn.issueSessionToken(elsewhere);
    const token = held === 'refresh token' ? login.credential : (tokens[0]?.token ?? '');
    const { status, body } = await post(api.url, '/auth/revoke', { token });
    assert.deepEqual([status, body], [200, {}]);
    for (const one of tokens) {
      assert.equal(await statusOfMe(second.url, one.token), 401);
      assert.equal(await statusOfMe(api.url, one.token), 401);
    }
    assert.equal((await refresh(login.credential, second.url)).body.error, 'invalid_grant');
    assert.equal(await statusOfMe(second.url, kept.token), 200);
    assert.equal((await post(second.url, '/auth/revoke', { token })).status, 200);
  });
}

test('revoking an unknown token succeeds and does nothing', async () => {
  for (const token of ['x', 'bst_x', `brt_${'a'.repeat(38)}`, api.token, 'a.b.c'])
    assert.equal((await post(api.url, '/auth/revoke', { token, token_type_hint: 'refresh_token' })).status, 200);

  assert.equal(await statusOfMe(api.url, api.token), 200);
});

test('an ended login gets no access token', async () => {
  const login = await signInPerson(api.signIn, await makePerson(api.signIn));
  await api.signIn.endLogin(login.loginId);
  await assert.rejects(api.signIn.issueSessionToken(login), refusedWith('wrong_credentials'));
});

test('a login keeps its newest fifty access tokens', async () => {
  const login = await signInPerson(api.signIn, await makePerson(api.signIn));
  const [first] = [await api.signIn.issueSessionToken(login)];
  for (let round = 0; round < 5; round += 1)
    await Promise.all(Array.from({ length: 10 }, () => api.signIn.issueSessionToken(login)));
  const last = await api.signIn.issueSessionToken(login);
  const { count } = await api.db
    .selectFrom('session_token')
    .select((eb) => eb.fn.countAll<string>().as('count'))
    .where('login_id', '=', login.loginId)
    .executeTakeFirstOrThrow();
  assert.equal(count, '50');
  assert.deepEqual([await statusOfMe(api.url, first?.token ?? ''), await statusOfMe(api.url, last.token)], [401, 200]);
});
