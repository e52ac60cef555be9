// The sign-in library finds its tables, reads no environment variables and serves no paths.
import assert from 'node:assert/strict';
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
