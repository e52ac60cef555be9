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

test('password attempts at the confirmation count as attempts to sign in', async () => {
  const old = await signedInLongAgo();
  // The sign-in was the first of ten.
  for (let attempt = 0; attempt < 9; attempt += 1)
    assert.equal((await old.visitor.post('/confirm', { password: 'a wrong password' })).status, 400);
  const limited = await old.visitor.post('/confirm', { password: PASSWORD });
  assert.equal(limited.status, 429);
  assert.ok(Number(limited.headers.get('retry-after')) > 0);
  assert.ok((await secondsSince(old)) > 3_500);
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
