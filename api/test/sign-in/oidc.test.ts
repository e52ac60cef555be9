// Sign-in with a real OIDC provider: acceptance, refusal, and an absent provider.
import assert from 'node:assert/strict';
import { after, before, beforeEach, test } from 'node:test';
import { sql } from 'kysely';
import { freePort } from '../../../protocol/test/free-port.ts';
import type { SignInError } from '../../src/services/people/sign-in-port.ts';
import { openSignIn } from '../../src/sign-in/sign-in.ts';
import { openDatabase } from '../../src/store/database/database.ts';
import { newId } from '../../src/store/database/ids.ts';
import { startApi, type TestApi } from '../world/api.ts';
import { SETTINGS } from '../world/settings.ts';
import { makePerson, newCaller, PASSWORD } from './client.ts';
import { configOf, startProvider, signInAtProvider, type TestProvider } from './provider.ts';

const { publicUrl } = SETTINGS;
let provider: TestProvider;
let api: TestApi;
before(async () => {
  provider = await startProvider({ publicUrl });
  api = await startApi({ durable: false, oidc: provider.config });
});
after(async () => {
  await api.close();
  await provider.close();
});
beforeEach(() => {
  api.context.settings.signUp = 'invited';
});

interface Step {
  status: number;
  location: string;
  /** Name and value of each set cookie, for a `Cookie` header. */
  cookies: string[];
  setCookies: string[];
}

async function step(url: string, init: RequestInit): Promise<Step> {
  const response = await fetch(url, { ...init, redirect: 'manual' });
  await response.arrayBuffer();
  assert.equal(response.headers.get('cache-control'), 'no-store');
  const setCookies = response.headers.getSetCookie();
  return {
    status: response.status,
    location: response.headers.get('location') ?? '',
    cookies: setCookies.map((line) => line.split(';', 1)[0] ?? ''),
    setCookies,
  };
}
const begin = async (returnTo?: string, at = api): Promise<Step> =>
  await step(`${at.url}/auth/oidc`, {
    method: 'POST',
    body: new URLSearchParams(returnTo === undefined ? {} : { return_to: returnTo }),
  });
const finishSignIn = async (way: URL, cookies: string[], at = api): Promise<Step> =>
  await step(at.url + way.pathname + way.search, {
    headers: { cookie: cookies.join('; '), 'user-agent': 'a browser' },
  });

/** Runs the whole flow for a user of the provider. */
async function signIn(who: TestProvider['who'], returnTo?: string): Promise<Step> {
  provider.who = who;
  const begun = await begin(returnTo);
  return await finishSignIn(await signInAtProvider(begun.location, publicUrl), begun.cookies);
}

const newPerson = () => ({
  sub: newId('signIn'),
  email: `${newId('user')}@example.test`,
  email_verified: true,
  name: 'Petra Provider',
});
const userOf = async (email: string) =>
  await api.db.selectFrom('user').selectAll().where('email', '=', email).executeTakeFirst();
const accountsOf = async (userId: string) =>
  await sql<Record<string, unknown>>`select * from account where "userId" = ${userId}`.execute(api.db);

async function assertIn(answer: Step, userId: string, path: string): Promise<void> {
  assert.deepEqual([answer.status, answer.location], [303, path]);
  const [spent = '', login = ''] = answer.setCookies;
  assert.match(spent, /^berth_oidc=; Path=\/; Max-Age=0; HttpOnly; SameSite=Lax$/);
  assert.match(login, /^berth_login=[\w.-]+; Path=\/; Max-Age=\d+; HttpOnly; SameSite=Lax$/);
  const credential = /^berth_login=([^;]+)/.exec(login)?.[1] ?? '';
  assert.equal((await api.signIn.findLogin(credential))?.userId, userId);
}

function assertOut(answer: Step, error: string): void {
  assert.deepEqual([answer.status, answer.location], [303, `/sign-in?error=${error}`]);
  assert.deepEqual(
    answer.cookies.filter((cookie) => cookie.startsWith('berth_login')),
    [],
  );
}

test('the redirect to the provider has PKCE, state and nonce, and seals them in a cookie', async () => {
  const { status, location, setCookies } = await begin();
  assert.equal(status, 303);
  const url = new URL(location);
  assert.equal(url.origin, provider.config.issuer);
  const query = Object.fromEntries(url.searchParams);
  assert.equal(query['redirect_uri'], `${publicUrl}/auth/oidc/callback`);
  assert.deepEqual([query['response_type'], query['code_challenge_method']], ['code', 'S256']);
  assert.deepEqual(query['scope']?.split(' ').toSorted(), ['email', 'openid', 'profile']);
  for (const name of ['state', 'nonce', 'code_challenge']) assert.ok((query[name] ?? '').length >= 32, name);
  assert.equal(setCookies.length, 1);
  assert.match(setCookies[0] ?? '', /^berth_oidc=[^;]+; Max-Age=600; Path=\/; HttpOnly; SameSite=Lax$/);
  assert.ok(!decodeURIComponent(setCookies[0] ?? '').includes(query['state'] ?? ''));
});

test('a user is matched by verified address once, then by subject', async () => {
  const who = newPerson();
  const person = await makePerson(api.signIn, { email: who.email });
  await assertIn(await signIn({ ...who, email: who.email.toUpperCase() }), person.userId, '/sign-in');
  assert.equal((await userOf(who.email))?.name, 'Pat Person');
  await assertIn(
    await signIn({ ...who, email: 'another@example.test', email_verified: false }, '/device?user_code=AB'),
    person.userId,
    '/device?user_code=AB',
  );
  assert.equal(await userOf('another@example.test'), undefined);
  const login = await api.signIn.withPassword({ email: person.email, password: PASSWORD }, newCaller());
  assert.equal(login.userId, person.userId);
});

test('no provider token is stored', async () => {
  const who = newPerson();
  const { userId } = await makePerson(api.signIn, { email: who.email });
  await signIn(who);
  await signIn(who);
  const { rows } = await accountsOf(userId);
  assert.deepEqual(
    rows.map(({ providerId }) => String(providerId)).toSorted((a, b) => a.localeCompare(b)),
    ['credential', 'oidc'],
  );
  const linked = rows.find(({ providerId }) => providerId === 'oidc');
  assert.equal(linked?.['accountId'], `${provider.config.issuer} ${who.sub}`);
  for (const name of [
    'accessToken',
    'refreshToken',
    'idToken',
    'accessTokenExpiresAt',
    'refreshTokenExpiresAt',
    'scope',
    'password',
  ])
    assert.equal(linked[name], null, name);

  assert.deepEqual(await api.db.selectFrom('verification').selectAll().execute(), []);
});

test('an address not verified by the provider neither links nor creates an account', async () => {
  const who = { ...newPerson(), email_verified: false };
  const { userId } = await makePerson(api.signIn, { email: who.email });
  api.context.settings.signUp = 'open';
  assertOut(await signIn(who), 'email_not_verified');
  assert.equal((await accountsOf(userId)).rows.length, 1);
  const unknown = { ...newPerson(), email_verified: false };
  assertOut(await signIn(unknown), 'email_not_verified');
  assert.equal(await userOf(unknown.email), undefined);
  const { email_verified: _, ...silent } = newPerson();
  assertOut(await signIn(silent), 'email_not_verified');
  const { email: __, ...withoutAddress } = newPerson();
  assertOut(await signIn(withoutAddress), 'provider_refused');
});

test("an account with an unverified address is not handed to the provider's owner of it", async () => {
  const who = newPerson();
  const { userId } = await makePerson(api.signIn, { email: who.email, emailVerified: false });
  assertOut(await signIn(who), 'email_not_verified');
  assert.equal((await accountsOf(userId)).rows.length, 1);
  assert.equal((await userOf(who.email))?.emailVerified, false);
});

test('without an account or an invitation the sign-in is refused', async () => {
  const who = newPerson();
  assertOut(await signIn(who), 'sign_up_closed');
  assert.equal(await userOf(who.email), undefined);
});

const invite = async (email: string, changes: object = {}) =>
  await api.db
    .insertInto('invitation')
    .values({
      id: newId('invitation'),
      org_id: api.orgId,
      email,
      role: 'viewer',
      invited_by: api.userId,
      token_sha256: null,
      expires_at: new Date(Date.now() + 86_400_000),
      sent_at: null,
      accepted_at: null,
      accepted_by: null,
      revoked_at: null,
      ...changes,
    })
    .execute();

test('an invitee gets an account with a verified address, and no membership yet', async () => {
  const who = newPerson();
  await invite(who.email);
  const answer = await signIn(who, '/invitation?token=x');
  const user = await userOf(who.email);
  assert.deepEqual([user?.emailVerified, user?.name, user?.image], [true, 'Petra Provider', null]);
  assert.match(user?.id ?? '', /^usr_[a-z2-7]{24}$/);
  await assertIn(answer, user?.id ?? '', '/invitation?token=x');
  const memberships = await api.db
    .selectFrom('membership')
    .selectAll()
    .where('user_id', '=', user?.id ?? '')
    .execute();
  assert.deepEqual(memberships, []);
});

test('each of several concurrent first sign-ins needs one connection at a time', async () => {
  const small = openDatabase({
    url: api.databaseUrl,
    maxConnections: 1,
    statementTimeoutMs: 30_000,
    onIdleError: () => undefined,
  });
  try {
    const library = openSignIn({ ...api.context, db: small.db, oidc: provider.config });
    const ways: { who: ReturnType<typeof newPerson>; query: Record<string, string>; cookies: string }[] = [];
    for (let n = 0; n < 4; n += 1) {
      const who = newPerson();
      // The last was not invited.
      if (n < 3) await invite(who.email);
      provider.who = who;
      const { location, setCookies } = await library.beginOidc('/');
      const { searchParams } = await signInAtProvider(location, publicUrl);
      ways.push({
        who,
        query: Object.fromEntries(searchParams),
        cookies: setCookies.map((line) => line.split(';', 1)[0]).join('; '),
      });
    }
    const ends = await Promise.allSettled(
      ways.map(({ query, cookies }) => library.finishOidc(query, cookies, newCaller())),
    );
    assert.deepEqual(
      ends.map((end) => (end.status === 'fulfilled' ? 'in' : end.reason.refusal)),
      ['in', 'in', 'in', 'sign_up_closed'],
    );
    assert.deepEqual(await Promise.all(ways.map(async ({ who }) => (await userOf(who.email)) !== undefined)), [
      true,
      true,
      true,
      false,
    ]);
  } finally {
    await small.db.destroy();
  }
});

test('first sign-ins count against the limits of address and mail domain; later ones do not', async () => {
  const limited = await startApi({
    durable: false,
    oidc: provider.config,
    settings: { signUp: 'open', signUpsPerHour: { address: 2, domain: 3 } },
  });
  const personAt = (domain: string) => ({ ...newPerson(), email: `${newId('user')}@${domain}` });
  const enter = async (who: ReturnType<typeof newPerson>, caller = newCaller()): Promise<string> => {
    provider.who = who;
    const { location, setCookies } = await limited.signIn.beginOidc('/');
    const { searchParams } = await signInAtProvider(location, publicUrl);
    const cookies = setCookies.map((line) => line.split(';', 1)[0]).join('; ');
    return await limited.signIn.finishOidc(Object.fromEntries(searchParams), cookies, caller).then(
      () => 'in',
      (error: SignInError) => error.refusal,
    );
  };
  try {
    const office = newCaller();
    const first = personAt('a.one.test');
    assert.deepEqual([await enter(first, office), await enter(personAt('b.two.test'), office)], ['in', 'in']);
    const third = personAt('c.three.test');
    assert.equal(await enter(third, office), 'sign_up_limit');
    const made = limited.db.selectFrom('user').select('id').where('email', '=', third.email);
    assert.equal(await made.executeTakeFirst(), undefined);
    assert.equal(await enter(third), 'in', 'from another address');
    for (let repeats = 0; repeats < 3; repeats += 1) assert.equal(await enter(first, office), 'in');
    await makePerson(limited.signIn, { email: 'linked@one.test' });
    assert.equal(await enter({ ...newPerson(), email: 'linked@one.test' }, office), 'in', 'linked, not created');
    // With the first, three accounts of one.test.
    assert.deepEqual([await enter(personAt('x.one.test')), await enter(personAt('y.one.test'))], ['in', 'in']);
    assert.equal(await enter(personAt('z.one.test')), 'sign_up_limit');
  } finally {
    await limited.close();
  }
});

for (const [what, changes] of Object.entries({
  revoked: { revoked_at: new Date() },
  accepted: { accepted_at: new Date() },
  expired: { expires_at: new Date(Date.now() - 1_000) },
})) {
  test(`an invitation that is ${what} admits nobody`, async () => {
    const who = newPerson();
    await invite(who.email, changes);
    assertOut(await signIn(who), 'sign_up_closed');
  });
}

test('open sign-up creates accounts for verified addresses; a missing name uses the address', async () => {
  api.context.settings.signUp = 'open';
  const { name: _, ...who } = newPerson();
  const answer = await signIn(who);
  const user = await userOf(who.email);
  assert.equal(user?.name, who.email.split('@')[0]);
  await assertIn(answer, user?.id ?? '', '/sign-in');
});

test('the return path belongs to this service, also after a refusal', async () => {
  const who = newPerson();
  const { userId } = await makePerson(api.signIn, { email: who.email });
  for (const [given, path] of [
    ['/device?user_code=AB-CD', '/device?user_code=AB-CD'],
    ['//evil.test', '/sign-in'],
    ['/\\evil.test', '/sign-in'],
    ['https://evil.test/', '/sign-in'],
    ['javascript:alert(1)', '/sign-in'],
    ['/x/..//evil.test', '/sign-in'],
    ['/\t/evil.test', '/sign-in'],
    ['/auth/oidc/refused?error=x', '/auth/oidc/refused?error=x'],
  ] as const)
    await assertIn(await signIn(who, given), userId, path);

  const refused = await signIn(newPerson(), '/device?user_code=AB');
  assert.equal(refused.location, '/sign-in?error=sign_up_closed&return_to=%2Fdevice%3Fuser_code%3DAB');
});

test('a callback with a wrong state, without its cookie or repeated signs nobody in', async () => {
  const who = newPerson();
  const { userId } = await makePerson(api.signIn, { email: who.email });
  provider.who = who;
  const begun = await begin();
  const other = await begin();
  const way = await signInAtProvider(begun.location, publicUrl);
  const altered = new URL(way);
  altered.searchParams.set('state', 'x'.repeat(32));
  const withoutState = new URL(way);
  withoutState.searchParams.delete('state');
  assertOut(await finishSignIn(way, other.cookies), 'provider_refused');
  assertOut(await finishSignIn(way, []), 'provider_refused');
  assertOut(await finishSignIn(way, ['berth_oidc=x']), 'provider_refused');
  assertOut(await finishSignIn(altered, begun.cookies), 'provider_refused');
  assertOut(await finishSignIn(withoutState, begun.cookies), 'provider_refused');
  assertOut(await finishSignIn(new URL('/auth/oidc/callback', publicUrl), []), 'provider_refused');
  await assertIn(await finishSignIn(way, begun.cookies), userId, '/sign-in');
  assertOut(await finishSignIn(way, begun.cookies), 'provider_refused');
});

test('a refusal by the provider and an unknown code sign nobody in', async () => {
  assertOut(await signIn(null), 'provider_refused');
  provider.who = newPerson();
  const begun = await begin();
  const way = await signInAtProvider(begun.location, publicUrl);
  way.searchParams.set('code', 'x'.repeat(43));
  assertOut(await finishSignIn(way, begun.cookies), 'provider_refused');
});

test('a provider outage disables its button only, until it is back', async () => {
  const port = await freePort();
  const late = await startApi({ durable: false, oidc: configOf(port), settings: { signUp: 'open' } });
  let up: TestProvider | undefined;
  try {
    assert.equal(late.signIn.oidcName, 'Test ID');
    assert.equal((await late.call('GET', '/health', { token: null })).status, 200);
    for (const answer of await Promise.all([begin('/device', late), begin('/device', late)]))
      assert.equal(answer.location, '/sign-in?error=provider_unavailable&return_to=%2Fdevice');

    const person = await makePerson(late.signIn);
    assert.equal((await late.signIn.withPassword(person, newCaller())).userId, person.userId);
    up = await startProvider({ publicUrl, port, claimsInIdToken: true });
    up.who = newPerson();
    const begun = await begin('/device', late);
    const answer = await finishSignIn(await signInAtProvider(begun.location, publicUrl), begun.cookies, late);
    assert.equal(answer.location, '/device');
    assert.match(answer.cookies[1] ?? '', /^berth_login=./);
  } finally {
    await late.close();
    await up?.close();
  }
});

test('without a provider there is no button, and its endpoint reports that', async () => {
  const without = openSignIn({ ...api.context, oidc: null });
  assert.equal(without.oidcName, null);
  await assert.rejects(without.beginOidc('/'), /single sign-on is not configured/);
});

test('a provider with another issuer is not used', async () => {
  const issuer = provider.config.issuer.replace('127.0.0.1', 'localhost');
  const confused = openSignIn({ ...api.context, oidc: { ...provider.config, issuer } });
  await assert.rejects(confused.beginOidc('/'), /does not respond/);
});

test("over https the flow's cookie is host-bound and Secure", async () => {
  const settings = { ...api.context.settings, publicUrl: 'https://berth.example.test' };
  const { setCookies } = await openSignIn({ ...api.context, settings, oidc: provider.config }).beginOidc('/');
  assert.match(setCookies.join(), /^__Host-berth_oidc=[^;]+; Max-Age=600; Path=\/; HttpOnly; Secure; SameSite=Lax$/);
});

test('too many callbacks lead to the sign-in page without a call to the provider', async () => {
  const begun = await begin();
  const way = await signInAtProvider(begun.location, publicUrl);
  const answer = await finishSignIn(new URL(`${publicUrl}/auth/oidc/callback`), []);
  assertOut(answer, 'provider_refused');
  await sql`update throttle set tokens = 0, refilled_at = clock_timestamp() + interval '1 day'`.execute(api.db);
  try {
    assertOut(await finishSignIn(way, begun.cookies), 'too_many_attempts');
  } finally {
    await sql`delete from throttle`.execute(api.db);
  }
  // The code was not used up.
  assert.equal((await finishSignIn(way, begun.cookies)).status, 303);
});
