// Confirmation of an older sign-in, and the actions of pages that require a recent one.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { sql } from 'kysely';
import { PASSWORD, startSite, type TestSite, type TestVisitor } from './site.ts';

const CALLER = { address: '192.0.2.1', userAgent: null };

let site: TestSite;
before(async () => {
  site = await startSite();
});
after(() => site.close());

interface Old {
  visitor: TestVisitor;
  userId: string;
  email: string;
}

/** A visitor who signed in an hour ago. */
async function signedInLongAgo(): Promise<Old> {
  const { userId, email } = await site.account();
  const visitor = site.visitor();
  await visitor.signIn(email);
  await sql`
    update "session" set "authenticatedAt" = now() - interval '1 hour' where "userId" = ${userId}`.execute(site.api.db);
  return { visitor, userId, email };
}

async function secondsSince({ userId }: Old): Promise<number> {
  const { id } = await site.api.db
    .selectFrom('session')
    .select('id')
    .where('userId', '=', userId)
    .executeTakeFirstOrThrow();
  return await site.signIn.secondsSinceSignIn(id);
}

test('the password confirms the sign-in and leads back', async () => {
  const old = await signedInLongAgo();
  assert.ok((await secondsSince(old)) > 3_500);
  const shown = await old.visitor.get('/confirm?return_to=/device');
  assert.deepEqual([shown.status, shown.heading], [200, 'Confirm that it is you']);
  const wrong = await old.visitor.post('/confirm', { password: 'a wrong password', return_to: '/device' });
  assert.deepEqual([wrong.status, wrong.errors], [400, ['The password is wrong.']]);
  assert.ok((await secondsSince(old)) > 3_500);
  const right = await old.visitor.post('/confirm', { password: PASSWORD, return_to: '/device' });
  assert.deepEqual([right.status, right.headers.get('location')], [303, '/device']);
  assert.ok((await secondsSince(old)) < 60);
  assert.equal((await old.visitor.get('/confirm?return_to=/device')).headers.get('location'), '/device');
  assert.equal((await old.visitor.get('/confirm')).heading, 'Your sign-in is confirmed');
});

test('another account of the browser, another site and a signed-out visitor confirm nothing', async () => {
  const old = await signedInLongAgo();
  const { email } = await site.account();
  const foreign = await old.visitor.post('/confirm', { password: PASSWORD }, { 'sec-fetch-site': 'cross-site' });
  assert.equal(foreign.status, 403);
  const injected = await old.visitor.post('/confirm', { password: 'not the password', email });
  assert.equal(injected.status, 400);
  const stranger = await site.visitor().post('/confirm', { password: PASSWORD });
  assert.match(stranger.headers.get('location') ?? '', /^\/sign-in\?/);
  const away = await old.visitor.post('/confirm', { password: PASSWORD, return_to: 'https://evil.example.test/' });
  assert.equal(away.heading, 'Your sign-in is confirmed');
});

test('a sign-in has ten confirmation attempts an hour, which no other sign-in counts', async () => {
  const old = await signedInLongAgo();
  for (let attempt = 0; attempt < 10; attempt += 1)
    assert.equal((await old.visitor.post('/confirm', { password: 'a wrong password' })).status, 400);
  const limited = await old.visitor.post('/confirm', { password: PASSWORD });
  assert.equal(limited.status, 429);
  assert.ok(Number(limited.headers.get('retry-after')) > 0);
  assert.ok((await secondsSince(old)) > 3_500);
  // Thus also a thief of the cookie does not stop the user.
  const other = site.visitor();
  await other.signIn(old.email);
  assert.equal((await other.post('/confirm', { password: PASSWORD })).status, 200);
});

test('strangers who try passwords at the sign-in do not stop a confirmation', async () => {
  const old = await signedInLongAgo();
  for (let attempt = 1; attempt < 10; attempt += 1)
    await site.visitor().post('/sign-in', { email: old.email, password: 'a wrong password' });
  assert.equal((await site.visitor().post('/sign-in', { email: old.email, password: PASSWORD })).status, 429);
  assert.equal((await old.visitor.post('/confirm', { password: PASSWORD })).status, 200);
  assert.ok((await secondsSince(old)) < 60);
});

test('an old sign-in approves no device until it is confirmed; it can deny one', async () => {
  const old = await signedInLongAgo();
  const { userCode } = await site.clients.requestDevice('berth-cli', CALLER);
  const page = `/device?user_code=${userCode}`;
  const confirm = `/confirm?return_to=${encodeURIComponent(page)}`;
  assert.equal((await old.visitor.get(page)).headers.get('location'), confirm);
  const posted = await old.visitor.post('/device', { user_code: userCode, decision: 'approve' });
  assert.equal(posted.headers.get('location'), page);
  assert.equal((await site.signIn.findDevice(userCode))?.status, 'pending');
  await old.visitor.post('/confirm', { password: PASSWORD, return_to: page });
  const approved = await old.visitor.post('/device', { user_code: userCode, decision: 'approve' });
  assert.equal(approved.heading, 'The device is signed in');
  const other = await site.clients.requestDevice('berth-cli', CALLER);
  const later = await signedInLongAgo();
  const denied = await later.visitor.post('/device', { user_code: other.userCode, decision: 'deny' });
  assert.equal(denied.heading, 'The device was denied');
});
