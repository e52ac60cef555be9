// Endpoints below /auth/: parameters, OAuth errors, and the console's cookie.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { newServices } from '../../src/control-plane/control-plane.ts';
import { openServer } from '../../src/control-plane/server.ts';
import { CodedError } from '../../src/rules/coded-error.ts';
import type { ClientSignIn } from '../../src/services/people/client-sign-in-port.ts';
import { startApi, type TestApi } from '../world/api.ts';
import { DEVICE_GRANT, makePerson, post, signInPerson, statusOfMe, stopRefilling, type AuthAnswer } from './client.ts';

let api: TestApi;
before(async () => {
  api = await startApi({ durable: false, settings: { sessionTokenMinutes: 5 } });
});
after(() => api.close());

const OWN = { 'sec-fetch-site': 'same-origin' };
const session = async (cookie: string, headers: Record<string, string> = OWN): Promise<AuthAnswer> =>
  await post(api.url, '/auth/session', '', { ...(cookie === '' ? {} : { cookie }), ...headers });

test('missing, unknown and repeated parameters are named', async () => {
  const cases: [path: string, body: string, error: string, message: RegExp][] = [
    ['/auth/token', '', 'invalid_request', /^grant_type is missing/],
    ['/auth/token', 'grant_type=password', 'unsupported_grant_type', /device_code or refresh_token/],
    ['/auth/token', 'grant_type=refresh_token', 'invalid_request', /^refresh_token is missing/],
    ['/auth/token', 'grant_type=refresh_token&refresh_token=', 'invalid_request', /^refresh_token is missing/],
    ['/auth/token', `grant_type=${DEVICE_GRANT}&client_id=berth-cli`, 'invalid_request', /^device_code is missing/],
    ['/auth/token', `grant_type=${DEVICE_GRANT}&device_code=x`, 'invalid_request', /^client_id is missing/],
    ['/auth/token', 'grant_type=a&grant_type=b', 'invalid_request', /^grant_type occurs more than once/],
    [
      '/auth/token',
      `grant_type=refresh_token&refresh_token=${'x'.repeat(4_097)}`,
      'invalid_request',
      /^refresh_token is longer than 4096/,
    ],
    [
      '/auth/token',
      'grant_type=refresh_token&refresh_token=x&client_id=other',
      'invalid_client',
      /client_id is unknown/,
    ],
    ['/auth/device/code', '', 'invalid_request', /^client_id is missing/],
    ['/auth/revoke', '', 'invalid_request', /^token is missing/],
  ];
  for (const [path, body, error, message] of cases) {
    const answer = await post(api.url, path, body);
    assert.equal(answer.status, error === 'invalid_client' ? 401 : 400, body);
    assert.equal(answer.body.error, error, body);
    assert.match(answer.body.error_description, message);
  }
});

test('JSON is accepted like a form and refused in the same way', async () => {
  const json = { 'content-type': 'application/json' };
  const { credential } = await signInPerson(api.signIn, await makePerson(api.signIn));
  const fine = await post(
    api.url,
    '/auth/token',
    JSON.stringify({ grant_type: 'refresh_token', refresh_token: credential }),
    json,
  );
  assert.deepEqual([fine.status, fine.body.expires_in], [200, 300]);
  assert.equal(await statusOfMe(api.url, fine.body.access_token), 200);
  for (const body of ['{', '[]', '"x"', 'null', '{"grant_type":7}', '{"__proto__":{"grant_type":"refresh_token"}}']) {
    const answer = await post(api.url, '/auth/token', body, json);
    assert.deepEqual([answer.status, answer.body.error], [400, 'invalid_request'], body);
  }
});

test("other content types and oversized bodies are refused in OAuth's format", async () => {
  const text = await post(api.url, '/auth/token', 'x', { 'content-type': 'text/plain' });
  assert.deepEqual([text.status, text.body.error], [415, 'invalid_request']);
  const long = await post(api.url, '/auth/token', `grant_type=${'x'.repeat(20_000)}`);
  assert.deepEqual([long.status, long.body.error], [413, 'invalid_request']);
});

test('the console exchanges its cookie for an access token, which prolongs the cookie', async () => {
  const { credential, userId } = await signInPerson(api.signIn, await makePerson(api.signIn));
  const { status, headers, body } = await session(`other=1; berth_login=${encodeURIComponent(credential)}`);
  assert.equal(status, 200);
  assert.deepEqual(Object.keys(body).toSorted(), ['access_token', 'expires_in', 'token_type', 'user_id']);
  assert.equal(body.user_id, userId);
  const { body: me } = await api.call('GET', '/v1/me', { token: body.access_token });
  assert.equal(me.id, userId);
  const [cookie = ''] = headers.getSetCookie();
  assert.match(cookie, /^berth_login=[^;]+; Path=\/; Max-Age=25919\d\d; HttpOnly; SameSite=Lax$/);
  assert.equal(decodeURIComponent(cookie.split(/[=;]/)[1] ?? ''), credential);
});

test('only pages of the service get an access token', async () => {
  const { credential } = await signInPerson(api.signIn, await makePerson(api.signIn));
  const cookie = `berth_login=${credential}`;
  const refusals: Record<string, string>[] = [
    {},
    { 'sec-fetch-site': 'cross-site' },
    { 'sec-fetch-site': 'same-site', origin: 'http://other.example.test' },
    { 'sec-fetch-site': 'none' },
    { origin: 'null' },
    { origin: 'http://berth.example.test.evil.test' },
    { origin: 'https://berth.example.test' },
  ];
  for (const headers of refusals) {
    const answer = await session(cookie, headers);
    assert.deepEqual([answer.status, answer.body.error], [403, 'access_denied'], JSON.stringify(headers));
    assert.deepEqual(answer.headers.getSetCookie(), []);
  }
  assert.equal((await session(cookie, { origin: 'http://berth.example.test' })).status, 200);
});

test('an invalid cookie, or one of an ended login, is cleared', async () => {
  const login = await signInPerson(api.signIn, await makePerson(api.signIn));
  await api.signIn.endLogin(login.loginId);
  for (const cookie of [`berth_login=${login.credential}`, 'berth_login=x', 'berth_login=%F0%9F%94%91']) {
    const { status, headers, body } = await session(cookie);
    assert.deepEqual([status, body.error], [401, 'login_required']);
    assert.deepEqual(headers.getSetCookie(), ['berth_login=; Path=/; Max-Age=0; HttpOnly; SameSite=Lax']);
  }
  for (const cookie of ['', 'berth_login=', 'berth_login=%', 'other=1', `__Host-berth_login=${login.credential}`]) {
    const { status, headers } = await session(cookie);
    assert.deepEqual([status, headers.getSetCookie()], [401, []], cookie);
  }
});

test("internal errors are in OAuth's format, without details", async () => {
  let fault: Error = new Error('a detail that is nobody else’s matter');
  const signIn: ClientSignIn = Object.create(api.signIn, { revoke: { value: () => Promise.reject(fault) } });
  const app = await openServer(newServices(api.context, signIn));
  const revoke = () => app.inject({ method: 'POST', url: '/auth/revoke', payload: { token: 'x' } });
  const broken = await revoke();
  assert.deepEqual([broken.statusCode, broken.json().error], [500, 'server_error']);
  assert.doesNotMatch(broken.body, /detail/);
  fault = new CodedError('shutting_down', 'this API replica is shutting down; retry', { retryAfterSeconds: 1 });
  const stopping = await revoke();
  assert.deepEqual([stopping.statusCode, stopping.json().error], [503, 'temporarily_unavailable']);
  assert.equal(stopping.headers['retry-after'], '1');
  await app.close();
});

test('a forwarded address from an untrusted caller is ignored', async () => {
  const answers: AuthAnswer[] = [];
  for (let attempt = 0; attempt < 31; attempt += 1) {
    const claimed = {
      'x-forwarded-for': `198.51.100.${attempt}`,
      forwarded: `for=198.51.100.${attempt}`,
      'x-real-ip': `198.51.100.${attempt}`,
    };
    answers.push(await post(api.url, '/auth/device/code', { client_id: 'berth-cli' }, claimed));
    await stopRefilling(api.db);
  }
  assert.deepEqual(
    answers.map(({ status }) => status),
    [...Array.from({ length: 30 }, () => 200), 429],
  );
});
