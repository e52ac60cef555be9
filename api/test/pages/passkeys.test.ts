// Use of passkeys with signatures that browsers would not make: other origins, old challenges, no
// user verification. passkeys-browser.long.test.ts has the rest.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { PASSKEYS_PER_USER } from '@berth/contract/route/limits.ts';
import { sql } from 'kysely';
import { Authenticator, type Signed } from './authenticator.ts';
import { startSite, type PageResponse, type TestSite, type TestVisitor } from './site.ts';

const publicUrl = 'https://berth.example.test';
const rpId = 'berth.example.test';

let site: TestSite;
before(async () => {
  site = await startSite({ settings: { publicUrl } });
});
after(() => site.close());

interface Offer {
  sealed: string;
  challenge: string;
}

interface Holder {
  userId: string;
  email: string;
  key: Authenticator;
}

async function holder(counter = 0): Promise<Holder> {
  const { userId, email } = await site.account();
  const key = new Authenticator();
  await addRow(userId, key, counter);
  return { userId, email, key };
}

async function addRow(userId: string, key: Authenticator, counter = 0): Promise<void> {
  await site.api.db
    .insertInto('passkey')
    .values({ id: key.id, user_id: userId, name: 'Key', public_key: key.publicKey, counter })
    .execute();
}

async function offerTo(visitor: TestVisitor, path = '/sign-in'): Promise<Offer> {
  const { text } = await visitor.get(path);
  const options = /data-passkey="get"\s+data-options="([^"]*)"/.exec(text)?.[1] ?? '';
  const sealed = /name="sealed" value="([^"]*)"/.exec(text)?.[1] ?? '';
  const { challenge } = JSON.parse(options.replaceAll('&quot;', '"')) as { challenge: string };
  return { sealed, challenge };
}

const post = async (visitor: TestVisitor, sealed: string, credential: string): Promise<PageResponse> =>
  await visitor.post('/passkey', { sealed, credential });
const LOGIN = '__Host-berth_login';

test('a passkey signs in; its challenge works once, in one browser', async () => {
  const { key, userId } = await holder();
  const visitor = site.visitor();
  const { sealed, challenge } = await offerTo(visitor);
  const credential = key.use({ challenge, origin: publicUrl, rpId });
  const stranger = site.visitor();
  assert.equal((await post(stranger, sealed, credential)).status, 410, 'without the cookie of the page');
  await offerTo(stranger);
  assert.equal((await post(stranger, sealed, credential)).status, 410, 'with the cookie of another page');
  const answer = await post(visitor, sealed, credential);
  assert.deepEqual([answer.status, answer.headers.get('location')], [303, '/sign-in'], answer.text);
  assert.ok(visitor.cookies.has(LOGIN));
  const replayed = await post(visitor, sealed, credential);
  assert.deepEqual([replayed.status, replayed.heading], [400, 'The passkey was not accepted']);
  const { rows } = await sql`select 1 from "session" where "userId" = ${userId}`.execute(site.api.db);
  assert.equal(rows.length, 1);
});

const WRONG: Record<string, Partial<Signed>> = {
  'from the origin of a preview': { origin: 'https://8080-abc.berth.example.test' },
  'from plain http': { origin: 'http://berth.example.test' },
  'from another port': { origin: 'https://berth.example.test:8443' },
  'for another service': { rpId: 'example.test' },
  'without user verification': { verified: false },
  'of another challenge': { challenge: Buffer.alloc(32).toString('base64url') },
  'of a registration': { type: 'webauthn.create' },
};
for (const [what, wrong] of Object.entries(WRONG)) {
  test(`a signature ${what} signs nobody in`, async () => {
    const { key } = await holder();
    const visitor = site.visitor();
    const { sealed, challenge } = await offerTo(visitor);
    const answer = await post(visitor, sealed, key.use({ challenge, origin: publicUrl, rpId, ...wrong }));
    assert.equal(answer.status, 400);
    assert.equal(visitor.cookies.has(LOGIN), false);
  });
}

test('the key of another passkey, a removed one and no JSON sign nobody in', async () => {
  const { key, userId } = await holder();
  const forged = new Authenticator();
  const visitor = site.visitor();
  const { sealed, challenge } = await offerTo(visitor);
  const signed = key.use({ challenge, origin: publicUrl, rpId });
  const stolenId = forged.use({ challenge, origin: publicUrl, rpId }).replaceAll(forged.id, key.id);
  for (const credential of [stolenId, '', 'null', '{}', '[]', '{"id":"\\u0000"}', signed.slice(0, -9)])
    assert.equal((await post(visitor, sealed, credential)).status, 400, credential.slice(0, 20));
  assert.equal(await site.clients.passkeys.remove(userId, key.id), true);
  assert.equal((await post(visitor, sealed, signed)).status, 400);
  assert.equal(visitor.cookies.has(LOGIN), false);
});

test('a counter that does not rise is refused: the passkey was copied', async () => {
  const { key } = await holder(7);
  for (const [counter, status] of [
    [7, 400],
    [6, 400],
    [8, 303],
    [8, 400],
  ] as const) {
    const visitor = site.visitor();
    const { sealed, challenge } = await offerTo(visitor);
    const answer = await post(visitor, sealed, key.use({ challenge, origin: publicUrl, rpId, counter }));
    assert.equal(answer.status, status, String(counter));
  }
});

test('of concurrent uses of a passkey and its copies with one counter, one succeeds', async () => {
  const { key } = await holder(7);
  const visitors = Array.from({ length: 8 }, () => site.visitor());
  const offers = await Promise.all(visitors.map(async (visitor) => ({ visitor, ...(await offerTo(visitor)) })));
  const answers = await Promise.all(
    offers.map(({ visitor, sealed, challenge }) =>
      post(visitor, sealed, key.use({ challenge, origin: publicUrl, rpId, counter: 8 })),
    ),
  );
  const statuses = answers.map(({ status }) => status).toSorted((a, b) => a - b);
  assert.deepEqual(statuses, [303, ...Array.from({ length: 7 }, () => 400)]);
});

test("another user's passkey does not confirm a sign-in", async () => {
  const mine = await holder();
  const other = await holder();
  const visitor = site.visitor();
  await visitor.signIn(mine.email);
  await sql`update "session" set "authenticatedAt" = now() - interval '1 hour'`.execute(site.api.db);
  const confirm = async (key: Authenticator): Promise<PageResponse> => {
    const { sealed, challenge } = await offerTo(visitor, '/confirm');
    const credential = key.use({ challenge, origin: publicUrl, rpId });
    return await visitor.post('/passkey', { sealed, credential, purpose: 'confirm', return_to: '/account' });
  };
  assert.equal((await confirm(other.key)).status, 400);
  assert.equal((await visitor.get('/confirm')).heading, 'Confirm that it is you');
  assert.equal((await confirm(mine.key)).headers.get('location'), '/account');
  assert.equal((await visitor.get('/confirm')).heading, 'Your sign-in is confirmed');
});

test("a user cannot rename or remove another's passkey, or begin one with an old sign-in", async () => {
  const mine = await holder();
  const other = await holder();
  const visitor = site.visitor();
  await visitor.signIn(mine.email);
  for (const action of ['rename_passkey', 'remove_passkey'])
    await visitor.post('/account', { action, id: other.key.id, name: 'Mine' });
  assert.deepEqual(
    (await site.clients.passkeys.list(other.userId)).map(({ name }) => name),
    ['Key'],
  );
  await sql`update "session" set "authenticatedAt" = now() - interval '1 hour'`.execute(site.api.db);
  for (const action of ['begin_passkey', 'add_passkey', 'rename_passkey', 'remove_passkey'])
    assert.match((await visitor.post('/account', { action })).headers.get('location') ?? '', /^\/confirm/);
});

test('only pages with a passkey form may run a script, and only that one', async () => {
  const policy = async (path: string): Promise<string> =>
    (await site.visitor().get(path)).headers.get('content-security-policy') ?? '';
  assert.match(await policy('/sign-in'), /; script-src https:\/\/berth\.example\.test\/passkeys\.js$/);
  assert.doesNotMatch(await policy('/forgot-password'), /script-src/);
  assert.match(await policy('/forgot-password'), /^default-src 'none'/);
});

test('an address allows fifty uses in a quarter of an hour; an account has twenty passkeys', async () => {
  const { userId } = await holder();
  for (let count = 1; count < PASSKEYS_PER_USER; count += 1) await addRow(userId, new Authenticator());
  assert.equal((await site.clients.passkeys.list(userId)).length, 20);
  const caller = { address: '192.0.2.77', userAgent: null };
  const use = async (): Promise<unknown> =>
    await site.clients.passkeys.use({ sealed: '', credential: '' }, '', caller).catch((error: unknown) => error);
  for (let count = 0; count < 50; count += 1)
    assert.equal(((await use()) as { refusal: string }).refusal, 'link_invalid');
  assert.equal(((await use()) as { refusal: string }).refusal, 'too_many_attempts');
});
