// The sign-in library finds its tables, reads no environment variables and serves no paths.
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { after, before, test } from 'node:test';
import { getMigrations } from 'better-auth/db/migration';
import { SecretKey } from '../../src/services/context/secret-key.ts';
import { openLibrary } from '../../src/sign-in/library.ts';
import { openSignIn } from '../../src/sign-in/sign-in.ts';
import { startApi, type TestApi } from '../world/api.ts';
import { makePerson, signInPerson } from './client.ts';

let api: TestApi;
before(async () => {
  api = await startApi({ durable: false });
});
after(() => api.close());

test('the library finds all its tables and columns', async () => {
  const { auth } = openLibrary(api.context, null);
  const { toBeCreated, toBeAdded } = await getMigrations(auth.options);
  assert.deepEqual([toBeCreated, toBeAdded], [[], []]);
});

test('a secret in the process environment has no effect; another secret key has', async () => {
  const person = await makePerson(api.signIn);
  const { credential, loginId } = await signInPerson(api.signIn, person);
  process.env['BETTER_AUTH_SECRET'] = 'x'.repeat(40);
  process.env['BETTER_AUTH_SECRETS'] = `2:${'y'.repeat(40)}`;
  try {
    assert.equal((await openSignIn({ ...api.context, oidc: null }).findLogin(credential))?.loginId, loginId);
  } finally {
    delete process.env['BETTER_AUTH_SECRET'];
    delete process.env['BETTER_AUTH_SECRETS'];
  }
  const stranger = openSignIn({ ...api.context, secretKey: new SecretKey(Buffer.alloc(32, 7)), oidc: null });
  assert.equal(await stranger.findLogin(credential), null);
});

test('a sign-in session outlives a rotation: its credential is accepted and signed anew', async () => {
  const [old, fresh] = [randomBytes(32), randomBytes(32)];
  const secretKey = new SecretKey(old);
  const signIn = openSignIn({ ...api.context, secretKey, oidc: null });
  const { credential, loginId } = await signInPerson(signIn, await makePerson(signIn));
  assert.equal(secretKey.replaceWith(new SecretKey(fresh, old)), true);
  assert.equal((await signIn.findLogin(credential))?.loginId, loginId);
  const renewed = (await signIn.refresh(credential))?.login.credential ?? '';
  assert.notEqual(renewed, credential);
  secretKey.replaceWith(new SecretKey(fresh));
  assert.equal(await signIn.findLogin(credential), null);
  assert.equal((await signIn.findLogin(renewed))?.loginId, loginId);
});

test('a device code outlives a rotation', async () => {
  const [old, fresh] = [randomBytes(32), randomBytes(32)];
  const secretKey = new SecretKey(old);
  const signIn = openSignIn({ ...api.context, secretKey, oidc: null });
  const caller = { address: '192.0.2.77', userAgent: null };
  const { deviceCode } = await signIn.requestDevice('berth-cli', caller);
  secretKey.replaceWith(new SecretKey(fresh, old));
  await assert.rejects(signIn.redeemDevice({ deviceCode, clientId: 'berth-cli' }, caller), {
    code: 'authorization_pending',
  });
  secretKey.replaceWith(new SecretKey(fresh));
  await assert.rejects(signIn.redeemDevice({ deviceCode, clientId: 'berth-cli' }, caller), { code: 'invalid_grant' });
});

test('a refresh token outlives a rotation, and its successor is signed anew', async () => {
  const [old, fresh] = [randomBytes(32), randomBytes(32)];
  const secretKey = new SecretKey(old);
  const signIn = openSignIn({ ...api.context, secretKey, oidc: null });
  const caller = { address: '192.0.2.78', userAgent: null };
  const { userId } = await makePerson(signIn);
  const { deviceCode, userCode } = await signIn.requestDevice('berth-cli', caller);
  await signIn.decideDevice(userCode, userId, 'approve');
  const { refreshToken } = await signIn.redeemDevice({ deviceCode, clientId: 'berth-cli' }, caller);
  secretKey.replaceWith(new SecretKey(fresh, old));
  const next = await signIn.redeemRefreshToken(refreshToken);
  assert.ok(next !== null);
  secretKey.replaceWith(new SecretKey(fresh));
  assert.equal(await signIn.redeemRefreshToken(refreshToken), null);
  assert.notEqual(await signIn.redeemRefreshToken(next.refreshToken), null);
});

test("the library's paths are not served", async () => {
  for (const path of [
    '/auth/sign-in/email',
    '/auth/sign-up/email',
    '/auth/get-session',
    '/auth/login',
    '/auth/device/approve',
    '/api/auth/ok',
    '/auth/ok',
  ]) {
    for (const method of ['GET', 'POST']) {
      const { status } = await fetch(api.url + path, { method });
      assert.equal(status, 404, `${method} ${path}`);
    }
  }
});
