// Accepting an invitation by its mailed link.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { PASSWORD, startSite, type TestSite } from './site.ts';

let site: TestSite;
before(async () => {
  site = await startSite();
});
after(() => site.close());

const ACCOUNT = { name: 'Grace Guest', password: PASSWORD, repeat: PASSWORD };

async function roleOf(email: string): Promise<string | undefined> {
  const row = await site.api.db
    .selectFrom('membership')
    .innerJoin('user', 'user.id', 'membership.user_id')
    .select('role')
    .where('user.email', '=', email)
    .where('org_id', '=', site.api.orgId)
    .executeTakeFirst();
  return row?.role;
}

test('an invitee without an account creates a verified one and joins; the link works once', async () => {
  const email = 'grace@example.test';
  const { id, token } = await site.invite(email, { role: 'operator' });
  const visitor = site.visitor();
  const shown = await visitor.get(`/invitation?token=${token}`);
  assert.deepEqual([shown.status, shown.heading], [200, 'Join First org']);
  assert.match(shown.text, /as an operator/);
  assert.match(shown.text, /value="grace@example\.test"[^>]*readonly/);
  const joined = await visitor.post('/invitation', { token, ...ACCOUNT, email: 'another@example.test' });
  assert.deepEqual([joined.status, joined.heading], [200, 'Welcome to First org']);
  assert.equal(await roleOf(email), 'operator');
  assert.match((await visitor.get('/sign-in')).text, /Hello, Grace Guest\./);
  const user = await site.api.db.selectFrom('user').selectAll().where('email', '=', email).executeTakeFirstOrThrow();
  assert.equal(user.emailVerified, true);
  const told = await site.api.db.selectFrom('activity').selectAll().where('subject_id', '=', id).execute();
  assert.deepEqual(
    told.map((row) => [row.kind, row.actor_kind, row.actor_user_id]),
    [['invitation_accepted', 'session', user.id]],
  );
  assert.match(told[0]?.request_id ?? '', /^\S+$/);
  const again = await site.visitor().get(`/invitation?token=${token}`);
  assert.equal(again.status, 410);
  assert.match(again.text, /was already accepted/);
  assert.equal((await site.visitor().post('/invitation', { token, ...ACCOUNT })).status, 410);
});

test('an invitee with an account signs in first, returns and accepts', async () => {
  const { email } = await site.account();
  const { token } = await site.invite(email);
  const visitor = site.visitor();
  const shown = await visitor.get(`/invitation?token=${token}`);
  const [, signIn = ''] = /href="(\/sign-in\?return_to=[^"]+)"/.exec(shown.text) ?? [];
  const returnTo = new URL(signIn, site.url).searchParams.get('return_to') ?? '';
  assert.equal(returnTo, `/invitation?token=${token}`);
  assert.doesNotMatch(shown.text, /type="password"/);
  const back = await visitor.post('/sign-in', { email, password: PASSWORD, return_to: returnTo });
  assert.equal(back.headers.get('location'), returnTo);
  const asked = await visitor.get(returnTo);
  assert.match(asked.text, /Accept the invitation/);
  assert.equal(await roleOf(email), undefined, 'a link that is opened accepts nothing');
  assert.equal((await visitor.post('/invitation', { token })).heading, 'Welcome to First org');
  assert.equal(await roleOf(email), 'member');
});

test('an existing account is not recreated: its password stays and the user is asked to sign in', async () => {
  const { email } = await site.account();
  const { token } = await site.invite(email);
  const answer = await site
    .visitor()
    .post('/invitation', { token, ...ACCOUNT, password: 'another boat entirely', repeat: 'another boat entirely' });
  assert.match(answer.text, /There is an account with this address/);
  assert.equal(await roleOf(email), undefined);
  await site.visitor().signIn(email);
});

test('an account left by an interrupted acceptance accepts after signing in', async () => {
  const email = 'halfway@example.test';
  const { token } = await site.invite(email);
  await site.signIn.createAccount({ email, name: 'Half Way', password: PASSWORD, emailVerified: true });
  const visitor = site.visitor();
  assert.match((await visitor.get(`/invitation?token=${token}`)).text, /There is an account with this address/);
  await visitor.signIn(email);
  assert.equal((await visitor.post('/invitation', { token })).status, 200);
  assert.equal(await roleOf(email), 'member');
});

test('a user signed in with another address cannot accept and is offered to sign out', async () => {
  const { email } = await site.account();
  const { token } = await site.invite('somebody-else@example.test');
  const visitor = site.visitor();
  await visitor.signIn(email);
  const shown = await visitor.get(`/invitation?token=${token}`);
  assert.equal(shown.status, 403);
  assert.match(shown.text, new RegExp(`signed in as <strong>${email}</strong>`));
  const refused = await visitor.post('/invitation', { token });
  assert.deepEqual([refused.status, refused.heading], [403, 'The invitation was not accepted']);
  assert.equal(await roleOf(email), undefined);
  const out = await visitor.post('/sign-out', { return_to: `/invitation?token=${token}` });
  assert.equal(out.headers.get('location'), `/invitation?token=${token}`);
  assert.equal((await visitor.get(`/invitation?token=${token}`)).status, 200);
});

test('an unverified address is verified first', async () => {
  const { userId, email } = await site.account();
  const { token } = await site.invite(email);
  const visitor = site.visitor();
  await visitor.signIn(email);
  await site.api.db.updateTable('user').set({ emailVerified: false }).where('id', '=', userId).execute();
  const shown = await visitor.get(`/invitation?token=${token}`);
  assert.equal(shown.status, 403);
  assert.match(shown.text, /href="\/verify-email"/);
  const refused = await visitor.post('/invitation', { token });
  assert.equal(refused.status, 403);
  assert.match(refused.text, /href="\/verify-email"/);
  assert.equal(await roleOf(email), undefined);
});

test('revoked, expired and unknown invitations are 410 and named as such', async () => {
  const revoked = await site.invite('revoked@example.test');
  await site.api.db.updateTable('invitation').set({ revoked_at: new Date() }).where('id', '=', revoked.id).execute();
  const expired = await site.invite('expired@example.test', { expired: true });
  for (const [token, said] of [
    [revoked.token, /was revoked/],
    [expired.token, /has expired/],
    ['x'.repeat(43), /No invitation has this link/],
    ['', /No invitation has this link/],
  ] as const) {
    for (const answer of [
      await site.visitor().get(`/invitation?token=${token}`),
      await site.visitor().post('/invitation', { token, ...ACCOUNT }),
    ]) {
      assert.equal(answer.status, 410);
      assert.match(answer.text, said);
    }
  }
  assert.deepEqual(
    await site.api.db
      .selectFrom('user')
      .select('id')
      .where('email', 'in', ['revoked@example.test', 'expired@example.test'])
      .execute(),
    [],
  );
});

test('errors in the new account form are shown at their fields, and nothing is created', async () => {
  const email = 'careful@example.test';
  const { token } = await site.invite(email);
  const { status, errors, text } = await site
    .visitor()
    .post('/invitation', { token, name: 'Cara', password: 'short', repeat: 'short' });
  assert.equal(status, 400);
  assert.deepEqual(errors, ['Use at least 12 characters']);
  assert.match(text, /value="Cara"/);
  assert.equal(await roleOf(email), undefined);
  assert.equal((await site.visitor().post('/invitation', { token, ...ACCOUNT })).status, 200);
});

test('a member invited again at the same address sees the existing membership', async () => {
  const { userId, email } = await site.account();
  await site.api.db
    .insertInto('membership')
    .values({ org_id: site.api.orgId, user_id: userId, role: 'viewer' })
    .execute();
  const { token } = await site.invite(email, { role: 'owner' });
  const visitor = site.visitor();
  await visitor.signIn(email);
  const { status, text } = await visitor.post('/invitation', { token });
  assert.equal(status, 409);
  assert.match(text, /You are already a member of the org/);
  assert.equal(await roleOf(email), 'viewer');
});

test('an IP address creates at most ten accounts an hour', async () => {
  const tokens = await Promise.all(
    Array.from({ length: 12 }, async (_, index) => (await site.invite(`many${index}@example.test`)).token),
  );
  const statuses: number[] = [];
  for (const token of tokens) statuses.push((await site.visitor().post('/invitation', { token, ...ACCOUNT })).status);
  assert.equal(statuses.at(-1), 429);
});
