// Signing in and out in a browser.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { untilTrue } from '../../../os/test/until.ts';
import { mailedToken, PASSWORD, startSite, type TestSite } from './site.ts';

let site: TestSite;
before(async () => {
  site = await startSite();
});
after(() => site.close());

test('address in any case and password sign in with an HttpOnly cookie; pages show the user', async () => {
  const { email } = await site.account({ name: 'Ada <b>Lovelace</b>' });
  const visitor = site.visitor();
  const { status, headers } = await visitor.post('/sign-in', {
    email: `  ${email.toUpperCase()} `,
    password: PASSWORD,
  });
  assert.equal(status, 303);
  assert.equal(headers.get('location'), '/sign-in');
  const [cookie = '', ...more] = headers.getSetCookie();
  assert.deepEqual(more, []);
  assert.match(cookie, /^berth_login=[^;]+; Path=\/; Max-Age=\d+; HttpOnly; SameSite=Lax$/);
  const { heading, text } = await visitor.get('/sign-in');
  assert.equal(heading, 'You are signed in');
  assert.match(text, /Hello, Ada &lt;b&gt;Lovelace&lt;\/b&gt;\./);
  assert.match((await visitor.get('/device')).text, new RegExp(`Signed in as <strong>${email}</strong>`));
});

test('a wrong password and an unknown address get the same 400; only the address is kept', async () => {
  const { email } = await site.account();
  const known = await site.visitor().post('/sign-in', { email, password: 'wrong wrong wrong' });
  const unknown = await site
    .visitor()
    .post('/sign-in', { email: 'nobody@example.test', password: 'wrong wrong wrong' });
  assert.equal(known.status, 400);
  assert.deepEqual(known.errors, ['The email address or the password is wrong.']);
  assert.match(known.text, /<title>Error: Sign in · Berth<\/title>/);
  assert.match(known.text, new RegExp(`value="${email}"`));
  assert.doesNotMatch(known.text, /wrong wrong/);
  assert.equal(unknown.status, 400);
  assert.equal(unknown.text.replaceAll('nobody@example.test', email), known.text);
});

test('missing fields are errors at the field, linked from the summary', async () => {
  const { status, text, errors } = await site.visitor().post('/sign-in', {});
  assert.equal(status, 400);
  assert.deepEqual(errors, ['Enter your email address', 'Enter your password']);
  assert.match(text, /<a href="#field-email">Enter your email address<\/a>/);
  assert.match(text, /id="field-email"[^>]*aria-describedby="field-email-error"[^>]*aria-invalid="true"/);
  assert.match(text, /role="alert"/);
});

test('too many attempts at one account are 429 with Retry-After, even with the right password', async () => {
  const { email } = await site.account();
  let last = await site.visitor().post('/sign-in', { email, password: 'wrong wrong wrong' });
  for (let tries = 1; tries < 30 && last.status === 400; tries += 1)
    last = await site.visitor().post('/sign-in', { email, password: 'wrong wrong wrong' });

  assert.equal(last.status, 429);
  assert.match(last.headers.get('retry-after') ?? '', /^[1-9]\d*$/);
  assert.match(
    last.errors[0] ?? '',
    /^Too many attempts for this account: the limit is 10 in 15 minutes; try again in /,
  );
  assert.equal((await site.visitor().post('/sign-in', { email, password: PASSWORD })).status, 429);
});

test('sign-in returns to the requested path, if it belongs to the service', async () => {
  const { email } = await site.account();
  const continueTo = async (returnTo: string): Promise<string | null> => {
    const { status, headers } = await site
      .visitor()
      .post('/sign-in', { email, password: PASSWORD, return_to: returnTo });
    assert.equal(status, 303);
    return headers.get('location');
  };
  assert.equal(await continueTo('/device?user_code=ABCD-EFGH'), '/device?user_code=ABCD-EFGH');
  for (const elsewhere of ['https://evil.test/', '//evil.test', '/\\evil.test', 'javascript:alert(1)', '/\t/evil.test'])
    assert.equal(await continueTo(elsewhere), '/sign-in', elsewhere);

  const visitor = site.visitor();
  const form = await visitor.get('/sign-in?return_to=/device%3Fuser_code%3DA%22B');
  assert.match(form.text, /name="return_to" value="\/device\?user_code=A%22B"/);
  await visitor.signIn(email);
  assert.equal((await visitor.get('/sign-in?return_to=/device')).headers.get('location'), '/device');
  assert.equal((await visitor.get('/sign-in?return_to=https://evil.test')).heading, 'You are signed in');
});

test('signing in as another user ends the first sign-in session', async () => {
  const [first, second] = [await site.account(), await site.account()];
  const visitor = site.visitor();
  await visitor.signIn(first.email);
  const stolen = visitor.cookies.get('berth_login') ?? '';
  await visitor.signIn(second.email);
  assert.match((await visitor.get('/device')).text, new RegExp(second.email));
  assert.equal(await site.signIn.findLogin(decodeURIComponent(stolen)), null);
});

test('signing out needs confirmation, revokes the login and its access tokens, clears the cookie', async () => {
  const { userId, email } = await site.account();
  const visitor = site.visitor();
  await visitor.signIn(email);
  const credential = decodeURIComponent(visitor.cookies.get('berth_login') ?? '');
  const login = await site.signIn.findLogin(credential);
  assert.ok(login);
  const { token } = await site.signIn.issueSessionToken(login);
  assert.equal((await site.api.call('GET', '/v1/me', { token })).status, 200);
  const asked = await visitor.get('/sign-out');
  assert.equal(asked.heading, 'Sign out');
  assert.notEqual(await site.signIn.findLogin(credential), null, 'a link that is opened signs nobody out');
  const { status, headers } = await visitor.post('/sign-out', {});
  assert.equal(status, 303);
  assert.equal(headers.get('location'), '/sign-in?notice=signed-out');
  assert.equal(visitor.cookies.size, 0);
  assert.match((await visitor.get('/sign-in?notice=signed-out')).text, /You are signed out\./);
  assert.equal(await site.signIn.findLogin(credential), null);
  assert.equal((await site.api.call('GET', '/v1/me', { token })).status, 401);
  assert.deepEqual(await site.api.db.selectFrom('session').select('id').where('userId', '=', userId).execute(), []);
  assert.equal((await visitor.get('/sign-out')).status, 303);
  assert.equal(
    (await visitor.post('/sign-out', { return_to: '//evil.test' })).headers.get('location'),
    '/sign-in?notice=signed-out',
  );
});

test('a foreign or altered cookie is ignored', async () => {
  const { email } = await site.account();
  const visitor = site.visitor();
  await visitor.signIn(email);
  const good = visitor.cookies.get('berth_login') ?? '';
  for (const value of [`${good.slice(0, -4)}AAAA`, 'x', '%', `${good}x`, 'y'.repeat(600), '']) {
    const response = await fetch(`${site.url}/sign-in`, { headers: { cookie: `other=1; berth_login=${value}` } });
    assert.match(await response.text(), /<h1>\s*Sign in\s*<\/h1>/, value);
  }
});

test('the right password of an unverified account sends a verification mail, which enables sign-in', async () => {
  const { email } = await site.account({ emailVerified: false });
  const visitor = site.visitor();
  const { status, errors } = await visitor.post('/sign-in', { email, password: PASSWORD });
  assert.equal(status, 400);
  assert.deepEqual(errors, [
    'Your email address is not verified yet. A mail with a link that verifies it is on its way to you.',
  ]);
  await untilTrue('a mail', () => site.api.mails.some(({ to }) => to === email));
  const token = mailedToken(site.api, email, '/verify-email');
  assert.equal((await visitor.post('/verify-email', { token })).status, 200);
  await visitor.signIn(email);
  const other = await site.account({ emailVerified: false });
  assert.deepEqual((await visitor.post('/sign-in', { email: other.email, password: 'wrong wrong wrong' })).errors, [
    'The email address or the password is wrong.',
  ]);
});

test('the provider button is absent without a provider', async () => {
  assert.doesNotMatch((await site.visitor().get('/sign-in')).text, /\/auth\/oidc/);
});
