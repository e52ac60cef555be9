// Database and log contain nothing that signs in.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { sql } from 'kysely';
import { pino } from 'pino';
import { newServices } from '../../src/control-plane/control-plane.ts';
import { openServer } from '../../src/control-plane/server.ts';
import { openSignIn } from '../../src/sign-in/sign-in.ts';
import { startApi, type TestApi } from '../world/api.ts';
import { SETTINGS } from '../world/settings.ts';
import { DEVICE_GRANT, makePerson, newCaller, PASSWORD } from './client.ts';
import { startProvider, signInAtProvider, type TestProvider } from './provider.ts';

let provider: TestProvider;
let api: TestApi;
before(async () => {
  provider = await startProvider({ publicUrl: SETTINGS.publicUrl });
  api = await startApi({ durable: false, oidc: provider.config });
});
after(async () => {
  await api.close();
  await provider.close();
});

/** Every row of every table, as text. */
async function dump(): Promise<string> {
  const { rows: tables } = await sql<{ name: string }>`
    select quote_ident(table_name) as name
    from information_schema.tables
    where table_schema = 'public' and table_type = 'BASE TABLE'`.execute(api.db);
  const parts: string[] = [];
  for (const { name } of tables) {
    const { rows } = await sql<{ text: string }>`select t::text as text from ${sql.raw(name)} t`.execute(api.db);
    parts.push(...rows.map(({ text }) => text));
  }
  return parts.join('\n');
}

test('no password, credential, token, device code or provider secret is in database or log', async () => {
  let log = '';
  const signIn = openSignIn({
    ...api.context,
    log: pino({ level: 'trace' }, { write: (line: string) => void (log += line) }),
    oidc: provider.config,
  });
  const app = await openServer(
    newServices(
      { ...api.context, log: pino({ level: 'trace' }, { write: (line: string) => void (log += line) }) },
      signIn,
    ),
  );
  const post = async (url: string, payload: object, headers = {}) =>
    await app.inject({ method: 'POST', url, payload, headers });

  const person = await makePerson(signIn);
  const login = await signIn.withPassword(person, newCaller());
  const device = (await post('/auth/device/code', { client_id: 'berth-cli' })).json();
  const waiting = (await post('/auth/device/code', { client_id: 'berth-cli' })).json();
  await signIn.decideDevice(device.user_code, person.userId, 'approve');
  const tokens = (
    await post('/auth/token', { grant_type: DEVICE_GRANT, client_id: 'berth-cli', device_code: device.device_code })
  ).json();
  const again = (
    await post('/auth/token', { grant_type: 'refresh_token', refresh_token: tokens.refresh_token })
  ).json();
  await post('/auth/token', { grant_type: 'refresh_token', refresh_token: `${login.credential}x` });
  const console_ = (
    await post('/auth/session', {}, { cookie: `berth_login=${login.credential}`, 'sec-fetch-site': 'same-origin' })
  ).json();
  provider.who = { sub: 'somebody', email: person.email, email_verified: true };
  const { location, setCookies } = await signIn.beginOidc('/');
  const way = await signInAtProvider(location, SETTINGS.publicUrl);
  const back = await app.inject({
    url: way.pathname + way.search,
    headers: { cookie: setCookies[0]?.split(';', 1)[0] ?? '' },
  });
  const [, credential] = /berth_login=([^;]+)/.exec(String(back.headers['set-cookie'])) ?? [];
  await app.close();

  const secrets = {
    password: PASSWORD,
    'credential of a password': login.credential,
    'credential of the provider': credential,
    'device code': device.device_code,
    'device code that waits': waiting.device_code,
    'refresh token': tokens.refresh_token,
    'session token': tokens.access_token,
    'session token of a refresh': again.access_token,
    'session token of the console': console_.access_token,
    'code of the provider': way.searchParams.get('code'),
    'client secret': provider.config.clientSecret,
    'state of the way to the provider': new URL(location).searchParams.get('state'),
  };
  const rows = await dump();
  assert.ok(rows.includes(login.loginId) && rows.includes(person.email) && log.includes('/auth/token'));
  for (const [what, secret] of Object.entries(secrets)) {
    assert.ok(typeof secret === 'string' && secret.length >= 20, what);
    assert.ok(!rows.includes(secret), `the database holds the ${what}`);
    assert.ok(!log.includes(secret), `the log holds the ${what}`);
  }
});

test('password hashes are salted scrypt: equal passwords differ', async () => {
  await makePerson(api.signIn);
  const { rows } = await sql<{ password: string }>`select password from account where password is not null`.execute(
    api.db,
  );
  const hashes = rows.map(({ password }) => password);
  assert.ok(hashes.length >= 2 && new Set(hashes).size === hashes.length);
  for (const hash of hashes) assert.match(hash, /^[0-9a-f]{32}:[0-9a-f]{128}$/);
});
