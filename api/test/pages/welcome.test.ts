// The owner of the first start claims the account.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { makeOwnerLink, requestPasswordReset, welcomeOwner } from '../../src/services/people/accounts.ts';
import { SignInError } from '../../src/services/people/sign-in-port.ts';
import { mailedToken, PASSWORD, startSite, type TestSite } from './site.ts';

let site: TestSite;
before(async () => {
  site = await startSite();
});
after(() => site.close());

/** Resets the owner's account to its state after the first start, with a new link. */
async function freshLink(): Promise<{ path: string; token: string }> {
  const { db, userId } = site.api;
  await db.deleteFrom('account').where('userId', '=', userId).execute();
  await db
    .updateTable('user')
    .set({ email: 'owner@localhost', name: 'Owner', emailVerified: false })
    .where('id', '=', userId)
    .execute();
  const { kind, path } = await makeOwnerLink(db);
  assert.equal(kind, 'welcome');
  return { path, token: path.split('token=')[1] ?? '' };
}

const GIVEN = { email: 'Olive@Example.test', name: 'Olive Ogden', password: PASSWORD, repeat: PASSWORD };

test('the owner sets address, name and password, is signed in and verified; the link works once', async () => {
  const { path, token } = await freshLink();
  const visitor = site.visitor();
  const shown = await visitor.get(path);
  assert.deepEqual([shown.status, shown.heading], [200, 'Welcome to Berth']);
  assert.doesNotMatch(shown.text, /owner@localhost/);
  const taken = await visitor.post('/welcome', { token, ...GIVEN });
  assert.deepEqual([taken.status, taken.headers.get('location')], [303, '/sign-in']);
  assert.match((await visitor.get('/sign-in')).text, /Hello, Olive Ogden\./);
  const user = await site.api.db
    .selectFrom('user')
    .selectAll()
    .where('id', '=', site.api.userId)
    .executeTakeFirstOrThrow();
  assert.deepEqual([user.email, user.name, user.emailVerified], ['olive@example.test', 'Olive Ogden', true]);
  for (const gone of [await visitor.get(path), await visitor.post('/welcome', { token, ...GIVEN })]) {
    assert.equal(gone.status, 410);
    assert.match(gone.text, /\.\/berth owner-link/);
  }
  const next = site.visitor();
  await next.signIn('olive@example.test');
  assert.equal((await makeOwnerLink(site.api.db)).kind, 'reset_password');
});

test('errors are shown at their fields, input is kept, and the link still works', async () => {
  const { token } = await freshLink();
  const other = await site.account();
  const visitor = site.visitor();
  for (const [changes, errors] of [
    [{ email: 'olive' }, ['Enter an email address like name@example.com']],
    [{ email: 'olive@localhost' }, ['Enter an email address like name@example.com']],
    [{ name: ' ' }, ['Enter your name']],
    [{ name: 'x'.repeat(101) }, ['Use at most 100 characters']],
    [{ name: 'two\nlines' }, ['Remove line breaks and control characters']],
    [{ password: 'short', repeat: 'short' }, ['Use at least 12 characters']],
    [{ repeat: 'another boat entirely' }, ['The two passwords are not the same']],
    [{ email: other.email }, ['Another account has this email address.']],
  ] as const) {
    const answer = await visitor.post('/welcome', { token, ...GIVEN, ...changes });
    assert.equal(answer.status, 400);
    assert.deepEqual(answer.errors, errors);
    assert.match(answer.text, new RegExp(`value="${'email' in changes ? changes.email : GIVEN.email}"`, 'i'));
    assert.equal(answer.text.includes(GIVEN.password), false);
  }
  assert.equal((await visitor.post('/welcome', { token, ...GIVEN })).status, 303);
});

test('a failed welcome leaves the account and the link unchanged', async () => {
  const { token } = await freshLink();
  const failing = {
    ...site.signIn,
    setPassword: () => Promise.reject(new SignInError('password_unfit', 'made so by a test')),
  };
  await assert.rejects(
    welcomeOwner(site.api.context, failing, { token, ...GIVEN, email: 'later@example.test' }),
    /made so by a test/,
  );
  const user = await site.api.db
    .selectFrom('user')
    .selectAll()
    .where('id', '=', site.api.userId)
    .executeTakeFirstOrThrow();
  assert.deepEqual([user.email, user.emailVerified], ['owner@localhost', false]);
  assert.equal((await site.visitor().post('/welcome', { token, ...GIVEN })).status, 303);
});

test('a mailed password link disables the welcome link, and vice versa', async () => {
  const { token } = await freshLink();
  await site.api.db
    .updateTable('user')
    .set({ email: 'owner@example.test' })
    .where('id', '=', site.api.userId)
    .execute();
  const mailed = async (): Promise<string> => {
    const before = site.api.mails.length;
    await requestPasswordReset(site.api.context, 'owner@example.test');
    assert.equal(site.api.mails.length, before + 1);
    return mailedToken(site.api, 'owner@example.test', '/reset-password');
  };
  const first = await mailed();
  assert.equal(
    (await site.visitor().post('/reset-password', { token: first, password: PASSWORD, repeat: PASSWORD })).status,
    303,
  );
  assert.equal((await site.visitor().post('/welcome', { token, ...GIVEN })).status, 410);
  const fresh = await freshLink();
  await site.api.db
    .updateTable('user')
    .set({ email: 'owner@example.test' })
    .where('id', '=', site.api.userId)
    .execute();
  const second = await mailed();
  assert.equal((await site.visitor().post('/welcome', { ...GIVEN, token: fresh.token })).status, 303);
  assert.equal((await site.visitor().get(`/reset-password?token=${second}`)).status, 410);
});

test('exactly one of many concurrent users of the link becomes the owner', async () => {
  const { token } = await freshLink();
  const people = Array.from({ length: 5 }, (_, index) => `owner${index}@example.test`);
  const answers = await Promise.all(people.map((email) => site.visitor().post('/welcome', { token, ...GIVEN, email })));
  assert.deepEqual(
    answers.map(({ status }) => status).toSorted((a, b) => a - b),
    [303, 410, 410, 410, 410],
  );
  const winner = people[answers.findIndex(({ status }) => status === 303)] ?? '';
  await site.visitor().signIn(winner);
});

test('a missing, partial or altered token does not open the page; the token is not logged', async () => {
  const { token } = await freshLink();
  for (const wrong of ['', token.slice(1), `${token}x`, token.toUpperCase()])
    assert.equal((await site.visitor().get(`/welcome?token=${wrong}`)).status, 410);

  assert.equal((await site.visitor().get(`/welcome?token=${token}`)).status, 200);
  assert.equal(site.log().includes(token), false);
});
