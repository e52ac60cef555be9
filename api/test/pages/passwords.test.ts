// Choosing a new password by a mailed link.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { sql } from 'kysely';
import { signInAs } from '../world/api.ts';
import { inactiveReason } from '../../src/rules/previews/link-creator.ts';
import { insertMembership } from '../../src/store/people/identity.ts';
import { deleteLogin } from '../../src/store/access/session-tokens.ts';
import { lockUser } from '../../src/store/people/accounts.ts';
import { findPublicAccess } from '../../src/store/previews/links.ts';
import { newServices } from '../../src/control-plane/control-plane.ts';
import { openServer } from '../../src/control-plane/server.ts';
import { makeOwnerLink } from '../../src/services/people/accounts.ts';
import type { Mailer } from '../../src/services/context/mail-port.ts';
import { lockWaiters } from '../world/lock-waiters.ts';
import { untilTrue } from '../../../os/test/until.ts';
import { breakMail, mailedToken, PASSWORD, startSite, type TestSite } from './site.ts';

const NEW = 'another boat entirely';

let site: TestSite;
before(async () => {
  site = await startSite();
});
after(() => site.close());

/** Requests a link and returns its token from the mail. */
async function resetToken(email: string): Promise<string> {
  const before = site.api.mails.length;
  const { status } = await site.visitor().post('/forgot-password', { email });
  assert.equal(status, 200);
  await untilTrue('a mail with a link', () => site.api.mails.length > before);
  return mailedToken(site.api, email, '/reset-password');
}

test('the forgot-password response does not reveal accounts; only an account gets mail', async () => {
  const { email } = await site.account();
  const stranger = 'stranger@example.test';
  const unknown = await site.visitor().post('/forgot-password', { email: stranger });
  const known = await site.visitor().post('/forgot-password', { email: email.toUpperCase() });
  assert.equal(known.status, 200);
  assert.equal(unknown.status, 200);
  assert.equal(unknown.text.replaceAll(stranger, email), known.text);
  await untilTrue('a mail', () => site.api.mails.some(({ to }) => to === email));
  assert.equal(
    site.api.mails.some(({ to }) => to === stranger),
    false,
  );
  const { subject, text, html } = site.api.mails.findLast(({ to }) => to === email) ?? assert.fail();
  assert.equal(subject, 'Choose a new password for Berth');
  assert.match(text, /works once, for 30 minutes/);
  assert.match(html, /<a href="http:\/\/berth\.example\.test\/reset-password\?token=[\w-]{43}">/);
});

test('a reset link shows the account, sets a password, ends every login and works once', async () => {
  const { email } = await site.account();
  const elsewhere = site.visitor();
  await elsewhere.signIn(email);
  const token = await resetToken(email);
  const visitor = site.visitor();
  const shown = await visitor.get(`/reset-password?token=${token}`);
  assert.equal(shown.status, 200);
  assert.match(shown.text, new RegExp(`type="email"\\s+autocomplete="username"[^>]*value="${email}"[^>]*readonly`));
  assert.match(shown.text, /autocomplete="new-password"/);
  // A GET, as by a mail scanner, does not consume the link.
  assert.equal((await visitor.get(`/reset-password?token=${token}`)).status, 200);
  const set = await visitor.post('/reset-password', { token, password: NEW, repeat: NEW });
  assert.equal(set.status, 303);
  assert.equal(set.headers.get('location'), '/sign-in?notice=password-set');
  assert.match((await visitor.get('/sign-in?notice=password-set')).text, /The new password is set/);
  assert.equal((await elsewhere.get('/sign-in')).heading, 'Sign in');
  assert.equal((await visitor.post('/sign-in', { email, password: PASSWORD })).status, 400);
  await visitor.signIn(email, NEW);
  for (const gone of [
    await visitor.get(`/reset-password?token=${token}`),
    await visitor.post('/reset-password', { token, password: PASSWORD, repeat: PASSWORD }),
  ]) {
    assert.deepEqual([gone.status, gone.heading], [410, 'This link does not work']);
    assert.match(gone.text, /href="\/forgot-password"/);
  }
});

test('a reset that asks for it revokes keys, tokens and links of the keys, noted in every feed', async () => {
  const { api } = site;
  const { userId, email } = await site.account();
  await insertMembership(api.db, { orgId: api.orgId, userId, role: 'owner' });
  const credentials = async (): Promise<{ key: string; agent: string; keyId: string; linkId: string }> => {
    const { token: session } = await signInAs(api.db, userId);
    const body = { name: 'k' };
    const { token: key, apiKey } = (await api.call('POST', `/v1/orgs/${api.orgId}/api-keys`, { token: session, body }))
      .body;
    const { token: agent } = (await api.call('POST', '/v1/me/agent-tokens', { token: session, body })).body;
    const { id } = await api.makeSandbox('ready');
    const link = { port: 3_000, audience: 'public' };
    const made = await api.call('POST', `/v1/sandboxes/${id}/previews`, { token: key, body: link });
    return { key, agent, keyId: apiKey.id, linkId: made.body.preview.id };
  };
  const reset = async (changes: Record<string, string>): Promise<void> => {
    const token = await resetToken(email);
    const set = await site.visitor().post('/reset-password', { token, password: NEW, repeat: NEW, ...changes });
    assert.equal(set.status, 303);
  };
  const statusOf = async (token: string): Promise<number> => (await api.call('GET', '/v1/me', { token })).status;
  const mine = await credentials();
  const other = await api.makeKey({});

  for (const revoke of ['', 'no']) await reset({ revoke });
  assert.deepEqual([await statusOf(mine.key), await statusOf(mine.agent)], [200, 200]);
  await sql`update throttle set tokens = 100`.execute(api.db);
  await reset({ revoke: 'yes' });
  assert.deepEqual([await statusOf(mine.key), await statusOf(mine.agent), await statusOf(other)], [401, 401, 200]);
  const link = await findPublicAccess(api.db, mine.linkId);
  assert.equal(inactiveReason(link?.creator ?? assert.fail()), 'api_key_revoked');
  const entries = await api.db
    .selectFrom('activity')
    .select(['kind', 'actor_kind', sql<string>`details->>'reason'`.as('reason')])
    .where('org_id', '=', api.orgId)
    .where('kind', 'in', ['api_key_revoked', 'agent_token_revoked'])
    .orderBy('kind')
    .execute();
  const said = { actor_kind: 'system', reason: 'its creator set a new password' };
  assert.deepEqual(entries, [
    { kind: 'agent_token_revoked', ...said },
    { kind: 'api_key_revoked', ...said },
  ]);
});

test('no key or token is created after a concurrent reset has revoked them', async () => {
  const { api } = site;
  const { userId } = await site.account();
  await insertMembership(api.db, { orgId: api.orgId, userId, role: 'owner' });
  const { token, loginId } = await signInAs(api.db, userId);
  const creates = await api.db.transaction().execute(async (reset) => {
    await lockUser(reset, userId);
    const calls = [`/v1/orgs/${api.orgId}/api-keys`, '/v1/me/agent-tokens'].map((path) =>
      api.call('POST', path, { token, body: { name: 'k' } }),
    );
    await untilTrue('both wait', async () => (await lockWaiters(api.db)) === 2);
    await deleteLogin(reset, loginId);
    return calls;
  });
  for (const { status, body } of await Promise.all(creates))
    assert.deepEqual([status, body.error.code], [401, 'unauthenticated']);
});

test('a failed reset revokes nothing and keeps the choice', async () => {
  const { userId, email } = await site.account();
  await insertMembership(site.api.db, { orgId: site.api.orgId, userId, role: 'owner' });
  const { token: session } = await signInAs(site.api.db, userId);
  const path = `/v1/orgs/${site.api.orgId}/api-keys`;
  const { token: key } = (await site.api.call('POST', path, { token: session, body: { name: 'k' } })).body;
  const token = await resetToken(email);
  const shown = await site
    .visitor()
    .post('/reset-password', { token, password: 'short', repeat: 'short', revoke: 'yes' });
  assert.match(shown.text, /type="checkbox"[^>]*checked/);
  const stale = { token: 'x'.repeat(43), password: NEW, repeat: NEW, revoke: 'yes' };
  assert.equal((await site.visitor().post('/reset-password', stale)).status, 410);
  assert.equal((await site.api.call('GET', '/v1/me', { token: key })).status, 200);
});

test('an invalid password is an error at its field, is not echoed, and keeps the link valid', async () => {
  const { email } = await site.account();
  const token = await resetToken(email);
  const visitor = site.visitor();
  for (const [password, repeat, errors] of [
    ['', '', ['Choose a password']],
    ['short', 'short', ['Use at least 12 characters']],
    ['x'.repeat(129), 'x'.repeat(129), ['Use at most 128 characters']],
    [`${NEW}\0`, `${NEW}\0`, ['Remove characters that cannot be stored']],
    [NEW, `${NEW}!`, ['The two passwords are not the same']],
    ['🚤🚤🚤🚤🚤🚤', '🚤🚤🚤🚤🚤🚤', ['Use at least 12 characters']],
  ] as const) {
    const answer = await visitor.post('/reset-password', { token, password, repeat });
    assert.equal(answer.status, 400);
    assert.deepEqual(answer.errors, errors);
    if (password !== '') assert.equal(answer.text.includes(password), false);
  }
  assert.equal((await visitor.post('/reset-password', { token, password: NEW, repeat: NEW })).status, 303);
});

test('exactly one of many concurrent uses sets its password', async () => {
  const { email } = await site.account();
  const token = await resetToken(email);
  const passwords = Array.from({ length: 6 }, (_, index) => `boat number ${index} of six`);
  const answers = await Promise.all(
    passwords.map((password) => site.visitor().post('/reset-password', { token, password, repeat: password })),
  );
  assert.deepEqual(
    answers.map(({ status }) => status).toSorted((a, b) => a - b),
    [303, 410, 410, 410, 410, 410],
  );
  const winner = passwords[answers.findIndex(({ status }) => status === 303)] ?? '';
  await site.visitor().signIn(email, winner);
});

test('a newer link replaces the older; a link expires after 30 minutes', async () => {
  const { userId, email } = await site.account();
  const older = await resetToken(email);
  const newer = await resetToken(email);
  assert.equal((await site.visitor().get(`/reset-password?token=${older}`)).status, 410);
  assert.equal((await site.visitor().get(`/reset-password?token=${newer}`)).status, 200);
  const moveBack = async (minutes: number): Promise<void> => {
    const earlier = sql<Date>`expires_at - ${minutes} * interval '1 minute'`;
    await site.api.db.updateTable('one_time_link').set({ expires_at: earlier }).where('user_id', '=', userId).execute();
  };
  await moveBack(29);
  assert.equal((await site.visitor().get(`/reset-password?token=${newer}`)).status, 200);
  await moveBack(1);
  assert.equal(
    (await site.visitor().post('/reset-password', { token: newer, password: NEW, repeat: NEW })).status,
    410,
  );
  await site.visitor().signIn(email);
});

test('a link works on its own page only', async () => {
  const { email } = await site.account();
  const token = await resetToken(email);
  for (const path of ['/welcome', '/verify-email', '/invitation']) {
    assert.equal((await site.visitor().get(`${path}?token=${token}`)).status, 410, path);
    assert.equal(
      (await site.visitor().post(path, { token, email, name: 'A', password: NEW, repeat: NEW })).status,
      path === '/verify-email' ? 410 : 410,
    );
  }
  assert.equal((await site.visitor().get(`/reset-password?token=${token}`)).status, 200);
});

test('a mailed link verifies the address when the new password is set', async () => {
  const { email } = await site.account({ emailVerified: false });
  const token = await resetToken(email);
  assert.equal((await site.visitor().post('/reset-password', { token, password: NEW, repeat: NEW })).status, 303);
  await site.visitor().signIn(email, NEW);
});

test('an address gets three links an hour, then 429 with Retry-After, with or without an account', async () => {
  for (const email of [(await site.account()).email, 'nobody-at-all@example.test']) {
    const statuses: number[] = [];
    for (let asked = 0; asked < 4; asked += 1) {
      const { status, headers } = await site.visitor().post('/forgot-password', { email });
      statuses.push(status);
      if (status === 429) assert.match(headers.get('retry-after') ?? '', /^[1-9]\d*$/);
    }
    assert.deepEqual(statuses, [200, 200, 200, 429]);
  }
});

test('a mail server failure does not change the response and is logged without the address', async () => {
  const { email } = await site.account();
  const recover = breakMail(site.api);
  try {
    assert.equal((await site.visitor().post('/forgot-password', { email })).status, 200);
    await untilTrue('a line in the log', () => site.log().includes('the mail server is down'));
  } finally {
    recover();
  }
  assert.equal(site.log().includes(email), false);
});

test('the response does not wait for the mail; shutting down does', async () => {
  const { email } = await site.account();
  const sending = Promise.withResolvers<void>();
  const sent = Promise.withResolvers<void>();
  const mailer: Mailer = {
    send: async () => {
      sending.resolve();
      await sent.promise;
    },
  };
  const app = await openServer(newServices({ ...site.api.context, mailer }, site.clients));
  const payload = new URLSearchParams({ email }).toString();
  const headers = { 'content-type': 'application/x-www-form-urlencoded', host: 'berth.example.test' };
  const answer = await app.inject({ method: 'POST', url: '/forgot-password', payload, headers });
  assert.equal(answer.statusCode, 200);
  await sending.promise;
  let stopped = false;
  const stopping = app.close().then(() => {
    stopped = true;
  });
  // A stop that did not wait would have finished before this query returns.
  await site.api.db.selectFrom('user').select('id').limit(1).execute();
  assert.equal(stopped, false);
  sent.resolve();
  await stopping;
});

test("an owner-link resets an existing password and is recorded in the org's feed", async () => {
  await site.signIn.setPassword(site.api.userId, PASSWORD);
  const link = await makeOwnerLink(site.api.db);
  assert.deepEqual([link.kind, link.minutes, link.email], ['reset_password', 30, 'owner@example.test']);
  assert.equal((await site.visitor().get(link.path)).heading, 'Set a new password');
  const told = await site.api.db
    .selectFrom('activity')
    .selectAll()
    .where('kind', '=', 'owner_link_created')
    .executeTakeFirstOrThrow();
  assert.deepEqual(
    [told.actor_kind, told.org_id, told.subject_kind, told.subject_id, told.details],
    ['operator', site.api.orgId, 'user', site.api.userId, { purpose: 'reset_password', minutes: 30 }],
  );
});
