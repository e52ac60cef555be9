// The page of a person's sign-ins.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { startSite, type TestSite, type TestVisitor } from './site.ts';

let site: TestSite;
before(async () => {
  site = await startSite();
});
after(() => site.close());

async function signedIn(): Promise<{ visitor: TestVisitor; userId: string; email: string }> {
  const { userId, email } = await site.account();
  const visitor = site.visitor();
  await visitor.signIn(email);
  return { visitor, userId, email };
}
const loginsOf = async (userId: string): Promise<{ id: string; userAgent: string | null }[]> =>
  await site.api.db.selectFrom('session').select(['id', 'userAgent']).where('userId', '=', userId).execute();

test('a signed-out visitor is sent to sign-in and changes nothing', async () => {
  const { userId } = await signedIn();
  const [login] = await loginsOf(userId);
  const stranger = site.visitor();
  for (const answer of [await stranger.get('/sign-ins'), await stranger.post('/sign-ins', { id: login?.id ?? '' })])
    assert.equal(answer.headers.get('location'), '/sign-in?return_to=%2Fsign-ins');
  assert.equal((await loginsOf(userId)).length, 1);
});

test('the page lists the sign-ins, escapes the name of a program and ends one', async () => {
  const { visitor, userId, email } = await signedIn();
  const caller = { address: '192.0.2.44', userAgent: '<img src=x onerror=alert(1)>' };
  const { loginId } = await site.signIn.createLogin(userId, caller);
  const page = await visitor.get('/sign-ins');
  assert.equal(page.heading, 'Your sign-ins');
  assert.match(page.text, /&lt;img src=x onerror=alert\(1\)&gt;/);
  assert.match(page.text, /from 192\.0\.2\.44/);
  assert.equal(page.text.match(/this browser/g)?.length, 1);
  assert.equal((await visitor.post('/sign-ins', { id: loginId })).headers.get('location'), '/sign-ins');
  assert.equal((await loginsOf(userId)).length, 1);
  assert.equal((await visitor.post('/sign-ins', { id: loginId })).status, 303, 'a repeated form is no error');
  assert.match((await visitor.get('/sign-ins')).text, new RegExp(email));
});

test("another user's sign-in cannot be ended by its id", async () => {
  const victim = await signedIn();
  const [login] = await loginsOf(victim.userId);
  const { visitor } = await signedIn();
  await visitor.post('/sign-ins', { id: login?.id ?? '' });
  assert.equal((await loginsOf(victim.userId)).length, 1);
});

test('one button ends all others and keeps this browser', async () => {
  const { visitor, userId, email } = await signedIn();
  const other = site.visitor();
  await other.signIn(email);
  await visitor.post('/sign-ins', {});
  assert.equal((await loginsOf(userId)).length, 1);
  assert.equal((await visitor.get('/sign-ins')).status, 200);
  assert.equal((await other.get('/sign-ins')).status, 303);
});
