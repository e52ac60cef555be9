// Authenticator apps and recovery codes: enrolment, sign-in, confirmation, removal.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { sql } from 'kysely';
import { Secret, TOTP } from 'otpauth';
import { untilTrue } from '../../../os/test/until.ts';
import { PASSWORD, startSite, type PageResponse, type TestSite, type TestVisitor } from './site.ts';

let site: TestSite;
before(async () => {
  site = await startSite();
});
after(() => site.close());

interface Enrolled {
  userId: string;
  email: string;
  visitor: TestVisitor;
  secret: string;
  codes: string[];
}

/** The code of an app now, or some 30-second steps later. */
function codeOf(secret: string, steps = 0): string {
  const totp = new TOTP({ secret: Secret.fromBase32(secret) });
  return totp.generate({ timestamp: Date.now() + steps * 30_000 });
}

function fieldOf(page: PageResponse, name: string): string {
  const [, value] = new RegExp(`name="${name}" value="([^"]*)"`).exec(page.text) ?? [];
  assert.ok(value, `no field ${name}`);
  return value;
}

const secretIn = ({ text }: PageResponse): string =>
  (/<p class="secret">([^<]*)</.exec(text)?.[1] ?? '').replaceAll(' ', '');
const codesIn = ({ text }: PageResponse): string[] =>
  [...text.matchAll(/<code>([^<]*)</g)].map(([, code]) => code ?? '');
const mailsTo = (email: string): string[] => site.api.mails.filter(({ to }) => to === email).map(({ text }) => text);

/** Forgets the codes used so far, as time does. */
async function forgetUse({ userId }: Pick<Enrolled, 'userId'>): Promise<void> {
  await site.api.db.updateTable('totp').set({ last_step: 0 }).where('user_id', '=', userId).execute();
}

async function enrolled(): Promise<Enrolled> {
  const { userId, email } = await site.account();
  const visitor = site.visitor();
  await visitor.signIn(email);
  const begun = await visitor.post('/account', { action: 'begin_totp' });
  const secret = secretIn(begun);
  const sealed = fieldOf(begun, 'sealed');
  const done = await visitor.post('/account', { action: 'enable_totp', sealed, code: codeOf(secret) });
  assert.equal(done.heading, 'The authenticator app is set up', done.text);
  await forgetUse({ userId });
  return { userId, email, visitor, secret, codes: codesIn(done) };
}

/** Enters the password, which leads to the page of the second factor. */
async function afterPassword({ email }: Pick<Enrolled, 'email'>, returnTo = ''): Promise<TestVisitor> {
  const visitor = site.visitor();
  const answer = await visitor.post('/sign-in', { email, password: PASSWORD, return_to: returnTo });
  assert.equal(answer.status, 303);
  assert.match(answer.headers.get('location') ?? '', /^\/second-factor/);
  assert.equal(visitor.cookies.has('berth_login'), false, 'the password alone signs nobody in');
  return visitor;
}

test('an app is set up with its first code; a wrong one keeps the secret and sets up nothing', async () => {
  const { userId, email } = await site.account();
  const visitor = site.visitor();
  await visitor.signIn(email);
  const begun = await visitor.post('/account', { action: 'begin_totp' });
  const secret = secretIn(begun);
  assert.match(secret, /^[A-Z2-7]{32}$/);
  assert.match(begun.text, /<svg\s+class="qr"\s+role="img"\s+aria-label="QR code of the secret"/);
  assert.equal(begun.headers.get('cache-control'), 'no-store');
  const sealed = fieldOf(begun, 'sealed');
  const wrong = await visitor.post('/account', { action: 'enable_totp', sealed, code: '000000' });
  assert.deepEqual([wrong.status, wrong.errors.length, secretIn(wrong)], [400, 1, secret]);
  assert.equal(await site.clients.factors.totpState(userId), null);
  const done = await visitor.post('/account', { action: 'enable_totp', sealed, code: codeOf(secret) });
  assert.equal(codesIn(done).length, 10);
  const shown = await visitor.get('/account');
  assert.match(shown.text, /10 recovery codes are left/);
  assert.equal(shown.text.includes(secret), false);
  const again = await visitor.post('/account', { action: 'enable_totp', sealed, code: codeOf(secret) });
  assert.equal(again.status, 409);
  await untilTrue('the mail', () => mailsTo(email).some((text) => text.includes('An authenticator app was added')));
});

test("another user's enrolment and an altered one set up nothing", async () => {
  const { email } = await site.account();
  const [one, other] = [site.visitor(), site.visitor()];
  await one.signIn(email);
  const { userId: otherId, email: otherEmail } = await site.account();
  await other.signIn(otherEmail);
  const begun = await one.post('/account', { action: 'begin_totp' });
  const sealed = fieldOf(begun, 'sealed');
  const code = codeOf(secretIn(begun));
  for (const sent of [sealed, `A${sealed.slice(1)}`, '', 'x'])
    assert.equal((await other.post('/account', { action: 'enable_totp', sealed: sent, code })).status, 410);
  assert.equal(await site.clients.factors.totpState(otherId), null);
});

test('the password needs a code, which works once and then leads back', async () => {
  const person = await enrolled();
  const code = codeOf(person.secret);
  const visitor = await afterPassword(person, '/device');
  const answer = await visitor.post('/second-factor', { code, return_to: '/device' });
  assert.deepEqual([answer.status, answer.headers.get('location')], [303, '/device']);
  assert.equal((await visitor.get('/account')).status, 200);
  assert.equal(visitor.cookies.has('berth_pending'), false);
  const replayed = await (await afterPassword(person)).post('/second-factor', { code });
  assert.deepEqual(replayed.errors, ['The code is wrong, or was used before; wait for the next one.']);
  const earlier = await (await afterPassword(person)).post('/second-factor', { code: codeOf(person.secret, -1) });
  assert.equal(earlier.status, 400, 'an earlier code than the last one');
});

test('of concurrent sign-ins with one code, one succeeds', async () => {
  const person = await enrolled();
  const code = codeOf(person.secret);
  const visitors = await Promise.all(Array.from({ length: 5 }, () => afterPassword(person)));
  const answers = await Promise.all(visitors.map((visitor) => visitor.post('/second-factor', { code })));
  assert.equal(answers.filter(({ status }) => status === 303).length, 1);
});

test('without the cookie of the password step a code signs nobody in', async () => {
  const person = await enrolled();
  const stranger = site.visitor();
  const answer = await stranger.post('/second-factor', { code: codeOf(person.secret) });
  assert.match(answer.headers.get('location') ?? '', /^\/sign-in/);
  assert.equal(stranger.cookies.size, 0);
  const other = await enrolled();
  const visitor = await afterPassword(other);
  assert.equal((await visitor.post('/second-factor', { code: codeOf(person.secret) })).status, 400);
});

test('a recovery code signs in once and is mailed; the tenth wrong code is the last for now', async () => {
  const person = await enrolled();
  const [recovery = ''] = person.codes;
  const first = await (await afterPassword(person)).post('/second-factor', { code: recovery.toUpperCase() });
  assert.equal(first.status, 303);
  const second = await (await afterPassword(person)).post('/second-factor', { code: recovery });
  assert.equal(second.status, 400);
  await untilTrue('the mail', () =>
    mailsTo(person.email).some((text) => text.includes('A recovery code was used (9 left)')),
  );
  const visitor = await afterPassword(person);
  // The enrolment, and the two above.
  for (let tried = 3; tried < 10; tried += 1)
    assert.equal((await visitor.post('/second-factor', { code: '000000' })).status, 400);
  const limited = await visitor.post('/second-factor', { code: codeOf(person.secret) });
  assert.equal(limited.status, 429);
  assert.ok(Number(limited.headers.get('retry-after')) > 0);
  // The limit of sign-ins does not stop a confirmation.
  const { visitor: signedIn, codes, userId } = person;
  await sql`update "session" set "authenticatedAt" = now() - interval '1 hour' where "userId" = ${userId}`.execute(
    site.api.db,
  );
  const confirmed = await signedIn.post('/confirm', { code: codes[1] ?? '', return_to: '/account' });
  assert.equal(confirmed.headers.get('location'), '/account');
});

test('a new password voids a sign-in that waits for its code, and keeps the app', async () => {
  const person = await enrolled();
  const visitor = await afterPassword(person);
  await site.signIn.setPassword(person.userId, 'another boat entirely');
  const answer = await visitor.post('/second-factor', { code: codeOf(person.secret) });
  assert.match(answer.headers.get('location') ?? '', /^\/sign-in/);
  assert.equal(visitor.cookies.has('berth_login'), false);
  const again = await site.visitor().post('/sign-in', { email: person.email, password: 'another boat entirely' });
  assert.match(again.headers.get('location') ?? '', /^\/second-factor/);
});

test('an old sign-in changes nothing until it is confirmed with a code; the password does not do', async () => {
  const person = await enrolled();
  const { visitor, userId } = person;
  await sql`update "session" set "authenticatedAt" = now() - interval '1 hour' where "userId" = ${userId}`.execute(
    site.api.db,
  );
  for (const action of ['begin_totp', 'enable_totp', 'disable_totp', 'replace_codes']) {
    const { headers } = await visitor.post('/account', { action });
    assert.equal(headers.get('location'), '/confirm?return_to=%2Faccount', action);
  }
  assert.equal((await visitor.post('/confirm', { password: PASSWORD })).status, 400);
  assert.notEqual(await site.clients.factors.totpState(userId), null);
  const confirmed = await visitor.post('/confirm', { code: codeOf(person.secret), return_to: '/account' });
  assert.equal(confirmed.headers.get('location'), '/account');
  const replaced = codesIn(await visitor.post('/account', { action: 'replace_codes' }));
  assert.equal(replaced.filter((code) => person.codes.includes(code)).length, 0);
  await visitor.post('/account', { action: 'disable_totp' });
  assert.equal(await site.clients.factors.totpState(userId), null);
  await site.visitor().signIn(person.email);
  await untilTrue('the mail', () => mailsTo(person.email).some((text) => text.includes('was removed from')));
});

test('the database and the log hold neither the secret nor the codes', async () => {
  const person = await enrolled();
  const code = codeOf(person.secret);
  await (await afterPassword(person)).post('/second-factor', { code });
  const { rows } = await sql<{ row: string }>`
    select row_to_json(totp)::text as row from totp union all
    select row_to_json(recovery_code)::text from recovery_code`.execute(site.api.db);
  const kept = rows.map(({ row }) => row).join('') + site.log();
  const { buffer } = Secret.fromBase32(person.secret);
  for (const secret of [person.secret, Buffer.from(buffer).toString('hex'), ...person.codes])
    assert.equal(kept.includes(secret), false);
});
