// Verifying an address by a mailed link.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { breakMail, mailedToken, startSite, type TestSite, type TestVisitor } from './site.ts';

let site: TestSite;
before(async () => {
  site = await startSite();
});
after(() => site.close());

/** Signs in a user with an unverified address, as after a change by the operator. */
async function unverified(): Promise<{ visitor: TestVisitor; email: string; userId: string }> {
  const { userId, email } = await site.account();
  const visitor = site.visitor();
  await visitor.signIn(email);
  await site.api.db.updateTable('user').set({ emailVerified: false }).where('id', '=', userId).execute();
  return { visitor, email, userId };
}

const isVerified = async (userId: string): Promise<boolean> =>
  (await site.api.db.selectFrom('user').select('emailVerified').where('id', '=', userId).executeTakeFirstOrThrow())
    .emailVerified;

test('a user requests the mail; its link changes nothing, its button verifies once in any browser', async () => {
  const { visitor, email, userId } = await unverified();
  assert.match((await visitor.get('/sign-in')).text, /Your email address is not verified yet/);
  assert.equal((await visitor.get('/verify-email')).heading, 'Verify your email address');
  const sent = await visitor.post('/verify-email', {});
  assert.deepEqual([sent.status, sent.heading], [200, 'Check your mail']);
  const token = mailedToken(site.api, email, '/verify-email');
  const reader = site.visitor();
  for (let opened = 0; opened < 3; opened += 1) {
    const shown = await reader.get(`/verify-email?token=${token}`);
    assert.equal(shown.status, 200);
    assert.match(shown.text, new RegExp(email));
  }
  assert.equal(await isVerified(userId), false);
  const verified = await reader.post('/verify-email', { token });
  assert.deepEqual([verified.status, verified.heading], [200, 'Your email address is verified']);
  assert.equal(await isVerified(userId), true);
  assert.equal((await reader.post('/verify-email', { token })).status, 410);
  assert.equal((await reader.get(`/verify-email?token=${token}`)).status, 410);
  assert.match((await visitor.get('/verify-email')).text, /there is nothing to do/);
  const mails = site.api.mails.length;
  assert.match((await visitor.post('/verify-email', {})).text, /there is nothing to do/);
  assert.equal(site.api.mails.length, mails);
});

test('a signed-out user is sent to sign-in and returns', async () => {
  for (const answer of [await site.visitor().get('/verify-email'), await site.visitor().post('/verify-email', {})])
    assert.deepEqual([answer.status, answer.headers.get('location')], [303, '/sign-in?return_to=%2Fverify-email']);
});

test('the mail is sent at most three times an hour', async () => {
  const { visitor } = await unverified();
  const statuses: number[] = [];
  for (let asked = 0; asked < 4; asked += 1) statuses.push((await visitor.post('/verify-email', {})).status);
  assert.deepEqual(statuses, [200, 200, 200, 429]);
});

test('a mail that cannot be sent is reported with 503', async () => {
  const { visitor } = await unverified();
  const recover = breakMail(site.api);
  try {
    const { status, headers, errors } = await visitor.post('/verify-email', {});
    assert.equal(status, 503);
    assert.equal(headers.get('retry-after'), '60');
    assert.deepEqual(errors, ['The mail could not be sent. Try again in a few minutes.']);
  } finally {
    recover();
  }
});
