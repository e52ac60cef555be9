// Device authorisation (RFC 8628) over real HTTP: request, approval or denial, access token.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { sql } from 'kysely';
import { startApi, type TestApi } from '../world/api.ts';
import {
  DEVICE_GRANT,
  makePerson,
  newCaller,
  post,
  refusedWith,
  startInstance,
  statusOfMe,
  stopRefilling,
  type AuthAnswer,
  type Instance,
  type Person,
} from './client.ts';

let api: TestApi;
let second: Instance;
let person: Person;
before(async () => {
  api = await startApi({ durable: false, settings: { trustedProxies: ['127.0.0.1'] } });
  second = await startInstance(api);
  person = await makePerson(api.signIn);
});
after(async () => {
  await second.close();
  await api.close();
});

const ask = async (clientId = 'berth-cli'): Promise<AuthAnswer> =>
  await post(api.url, '/auth/device/code', { client_id: clientId }, { 'x-forwarded-for': newCaller().address });
const poll = async (deviceCode: string, clientId = 'berth-cli', url = api.url): Promise<AuthAnswer> =>
  await post(url, '/auth/token', { grant_type: DEVICE_GRANT, device_code: deviceCode, client_id: clientId });
/** As if the interval had passed. */
const afterInterval = (): Promise<unknown> =>
  sql`update "deviceCode" set "lastPolledAt" = "lastPolledAt" - interval '5 seconds'`.execute(api.db);

test('an approved device gets an access token and a refresh token', async () => {
  const { status, body: asked } = await ask();
  assert.equal(status, 200);
  assert.match(asked.user_code, /^[A-HJ-NP-Z2-9]{4}-[A-HJ-NP-Z2-9]{4}$/);
  assert.equal(asked.verification_uri, 'http://berth.example.test/device');
  assert.equal(asked.verification_uri_complete, `http://berth.example.test/device?user_code=${asked.user_code}`);
  assert.deepEqual([asked.expires_in, asked.interval], [900, 5]);

  const waiting = await poll(asked.device_code);
  assert.deepEqual([waiting.status, waiting.body.error], [400, 'authorization_pending']);
  const typed = asked.user_code.replace('-', '').toLowerCase();
  assert.deepEqual(await api.signIn.findDevice(typed), {
    userCode: asked.user_code,
    clientId: 'berth-cli',
    status: 'pending',
  });
  await api.signIn.decideDevice(typed, person.userId, 'approve');
  assert.equal((await api.signIn.findDevice(typed))?.status, 'approved');

  await afterInterval();
  const { status: polled, body: tokens } = await poll(asked.device_code);
  assert.equal(polled, 200);
  assert.deepEqual(Object.keys(tokens).toSorted(), ['access_token', 'expires_in', 'refresh_token', 'token_type']);
  assert.deepEqual([tokens.token_type, tokens.expires_in], ['Bearer', 3_600]);
  assert.match(tokens.access_token, /^bst_/);
  const { body: me } = await api.call('GET', '/v1/me', { token: tokens.access_token });
  assert.equal(me.id, person.userId);
});

test('a device code works once across instances, even under concurrent polls', async () => {
  const { body: asked } = await ask();
  await api.signIn.decideDevice(asked.user_code, person.userId, 'approve');
  const answers = await Promise.all(
    Array.from({ length: 8 }, (_, index) =>
      poll(asked.device_code, 'berth-cli', index % 2 === 0 ? api.url : second.url),
    ),
  );
  assert.equal(answers.filter(({ status }) => status === 200).length, 1);
  assert.ok(
    answers
      .filter(({ status }) => status === 400)
      .every(({ body }) => ['invalid_grant', 'slow_down'].includes(body.error)),
  );
  const again = await poll(asked.device_code);
  assert.deepEqual([again.status, again.body.error], [400, 'invalid_grant']);
});

test('a device that polls before its interval gets slow_down', async () => {
  const { body: asked } = await ask();
  assert.equal((await poll(asked.device_code)).body.error, 'authorization_pending');
  assert.equal((await poll(asked.device_code)).body.error, 'slow_down');
  await afterInterval();
  assert.equal((await poll(asked.device_code)).body.error, 'authorization_pending');
});

test('a denied device gets access_denied', async () => {
  const { body: asked } = await ask();
  await api.signIn.decideDevice(asked.user_code, person.userId, 'deny');
  assert.equal((await poll(asked.device_code)).body.error, 'access_denied');
  assert.equal((await poll(asked.device_code)).body.error, 'invalid_grant');
});

test('an expired code works for nobody, approved or not, and cannot be approved', async () => {
  const { body: asked } = await ask();
  const { body: approved } = await ask();
  await api.signIn.decideDevice(approved.user_code, person.userId, 'approve');
  await sql`update "deviceCode" set "expiresAt" = now() - interval '1 second'`.execute(api.db);
  assert.equal(await api.signIn.findDevice(asked.user_code), null);
  await assert.rejects(api.signIn.decideDevice(asked.user_code, person.userId, 'approve'), refusedWith('link_invalid'));
  assert.equal((await poll(asked.device_code)).body.error, 'expired_token');
  assert.equal((await poll(approved.device_code)).body.error, 'expired_token');
});

test('the first of many decisions on a device counts', async () => {
  const { body: asked } = await ask();
  const decisions = await Promise.allSettled(
    Array.from({ length: 10 }, (_, index) =>
      (index % 2 === 0 ? api : second).signIn.decideDevice(
        asked.user_code,
        person.userId,
        index % 3 === 0 ? 'deny' : 'approve',
      ),
    ),
  );
  assert.equal(decisions.filter(({ status }) => status === 'fulfilled').length, 1);
});

test('an unknown code finds no device', async () => {
  for (const typed of [
    '',
    'ABCD-EFGH',
    'ABCDEFG',
    "' or 1=1 --",
    'x'.repeat(100_000),
    'ＡＢＣＤ-ＥＦＧＨ',
    '\0\0\0\0\0\0\0\0',
  ]) {
    assert.equal(await api.signIn.findDevice(typed), null);
    await assert.rejects(api.signIn.decideDevice(typed, person.userId, 'approve'), refusedWith('link_invalid'));
  }
});

test('the stored values cannot be used as codes', async () => {
  const { body: asked } = await ask();
  await api.signIn.decideDevice(asked.user_code, person.userId, 'approve');
  const { deviceCode } = await api.db
    .selectFrom('deviceCode')
    .select('deviceCode')
    .where('userCode', '=', asked.user_code.replace('-', ''))
    .executeTakeFirstOrThrow();
  const [, mac] = asked.device_code.split('.');
  for (const guess of [
    deviceCode,
    `${deviceCode}.`,
    `${deviceCode}.${'A'.repeat(43)}`,
    `${deviceCode}.${mac}A`,
    `.${mac}`,
    `x.${mac}`,
  ])
    assert.equal((await poll(guess)).body.error, 'invalid_grant', guess);

  assert.equal((await poll(asked.device_code)).status, 200);
});

test('a code works for its own client only', async () => {
  const { body: asked } = await ask('berth-console');
  await api.signIn.decideDevice(asked.user_code, person.userId, 'approve');
  assert.equal((await poll(asked.device_code, 'berth-cli')).body.error, 'invalid_grant');
  assert.equal((await poll(asked.device_code, 'berth-console')).status, 200);
});

test('unknown clients are refused', async () => {
  const { body: asked } = await ask();
  for (const answer of [await ask('someone-else'), await poll(asked.device_code, 'someone-else')])
    assert.deepEqual([answer.status, answer.body.error], [401, 'invalid_client']);
});

test("a login records the device's address and user agent, truncated to a limit", async () => {
  const { body: asked } = await ask();
  await api.signIn.decideDevice(asked.user_code, person.userId, 'approve');
  const { body } = await post(
    api.url,
    '/auth/token',
    { grant_type: DEVICE_GRANT, device_code: asked.device_code, client_id: 'berth-cli' },
    { 'user-agent': `berth/1 ${'x'.repeat(1_000)}`, 'x-forwarded-for': '198.51.100.7' },
  );
  assert.equal(await statusOfMe(second.url, body.access_token), 200);
  const login = await api.db
    .selectFrom('session')
    .selectAll()
    .orderBy('createdAt', 'desc')
    .limit(1)
    .executeTakeFirstOrThrow();
  assert.equal(login.userId, person.userId);
  assert.equal(login.ipAddress, '198.51.100.7');
  assert.match(login.userAgent ?? '', /^berth\/1 x{504}$/);
});

test('code requests are limited per address to thirty in a quarter of an hour', async () => {
  const headers = { 'x-forwarded-for': '198.51.100.8' };
  const request = (): Promise<AuthAnswer> => post(api.url, '/auth/device/code', { client_id: 'berth-cli' }, headers);
  const first = await request();
  await stopRefilling(api.db);
  const asked = [first, ...(await Promise.all(Array.from({ length: 30 }, request)))];
  assert.equal(asked.filter(({ status }) => status === 200).length, 30);
  const refused = asked.find(({ status }) => status === 429);
  assert.equal(refused?.body.error, 'slow_down');
  assert.match(refused?.headers.get('retry-after') ?? '', /^[1-9]\d*$/);
});
