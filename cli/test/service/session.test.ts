// Stored sign-ins: concurrent refresh, and messages after their end.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readdirSync } from 'node:fs';
import { dirname } from 'node:path';
import { afterEach, beforeEach, test } from 'node:test';
import { AuthServer } from '../world/auth-server.ts';
import { berth, newHome, startBerth, type Ended } from '../world/berth.ts';
import { profilePath, readProfiles, sessionOf, writeProfiles } from '../world/profile.ts';

let api: AuthServer;
let home: string;
beforeEach(async () => {
  api = await AuthServer.start();
  home = newHome();
});
afterEach(() => api.close());

const signedIn = (livesSeconds: number): void => {
  api.tokens.add('token-0');
  writeProfiles(home, { default: { url: api.url, session: sessionOf('token-0', 'refresh-0', livesSeconds) } });
};
const whoami = async (): Promise<Ended> => await berth(['whoami', '--json'], { env: { HOME: home } });
const assertIsAda = ({ code, stdout, stderr }: Ended): void => {
  assert.deepEqual([code, stderr], [0, '']);
  assert.equal((JSON.parse(stdout) as { email: string }).email, 'ada@example.test');
};
const lockFolder = (): string => `${profilePath(home)}.lock`;
/** Asserts that no temporary files remain. */
const assertTidy = (): void => assert.deepEqual(readdirSync(dirname(profilePath(home))), ['config.json']);

test('a token with more than a minute left is used unchanged', async () => {
  signedIn(90);
  assertIsAda(await whoami());
  assert.deepEqual([api.refreshes, api.seen.map(({ authorization }) => authorization)], [0, ['Bearer token-0']]);
});

test('a token with less than a minute left is refreshed before use, and the new one is stored', async () => {
  signedIn(50);
  assertIsAda(await whoami());
  assert.deepEqual(
    api.seen.map(({ path, authorization }) => [path, authorization]),
    [
      ['/auth/token', undefined],
      ['/v1/me', 'Bearer token-1'],
    ],
  );
  const { session } = readProfiles(home).profiles['default'] ?? {};
  assert.deepEqual([session?.token, session?.refreshToken], ['token-1', 'refresh-1']);
  assertIsAda(await whoami());
  assert.equal(api.refreshes, 1);
  assertTidy();
});

test('of concurrent processes one refreshes, and all use its token', async () => {
  signedIn(-10);
  const ended = await Promise.all(Array.from({ length: 8 }, async () => await whoami()));
  ended.forEach(assertIsAda);
  assert.equal(api.refreshes, 1);
  assert.equal(readProfiles(home).profiles['default']?.session?.refreshToken, 'refresh-1');
  assertTidy();
});

test('a process killed during its refresh blocks no other', async () => {
  signedIn(-10);
  const asked = Promise.withResolvers<void>();
  api.answer = async ({ path }) => {
    if (path !== '/auth/token') return undefined;
    asked.resolve();
    // Never responds: the process is killed meanwhile.
    return await new Promise(() => undefined);
  };
  const { child } = startBerth(['whoami'], { env: { HOME: home } });
  await asked.promise;
  assert.equal(readdirSync(lockFolder()).length, 1);
  child.kill('SIGKILL');
  await once(child, 'close');
  assert.equal(readdirSync(lockFolder()).length, 1, 'its lock is still there');
  api.answer = () => undefined;
  assertIsAda(await whoami());
  assertTidy();
});

test('a refused refresh ends the sign-in with exit code 4 and how to sign in', async () => {
  signedIn(-10);
  api.refreshToken = 'of somebody else';
  const { code, stdout, stderr } = await whoami();
  assert.deepEqual(
    [code, stdout, stderr],
    [4, '', `berth: the sign-in at ${api.url} has ended\n  sign in again with berth login\n`],
  );
  writeProfiles(home, { staging: { url: api.url, session: sessionOf('token-0', 'refresh-0', -10) } }, 'staging');
  assert.match((await whoami()).stderr, /^ {2}sign in again with berth login --profile staging$/m);
});

test('a temporary refresh failure is reported as such, and the sign-in is kept', async () => {
  signedIn(-10);
  api.answer = ({ path }) =>
    path === '/auth/token'
      ? { status: 503, body: { error: 'temporarily_unavailable', error_description: 'come back' } }
      : undefined;
  const { code, stderr } = await whoami();
  assert.deepEqual([code, stderr], [1, 'berth: cannot refresh the sign-in: come back (temporarily_unavailable)\n']);
  assert.equal(readProfiles(home).profiles['default']?.session?.refreshToken, 'refresh-0');
  // A token that is still valid is used after a failed refresh.
  signedIn(40);
  assertIsAda(await whoami());
});

test('neither a refusal nor a failure shows a token', async () => {
  for (const answer of [
    { status: 500, body: 'refresh-0 token-0' },
    { status: 400, body: { error: 'invalid_request', error_description: 'no' } },
    { status: 302, body: '', headers: { location: 'http://127.0.0.1:9/refresh-0' } },
  ]) {
    signedIn(-10);
    api.answer = ({ path }) => (path === '/auth/token' ? answer : undefined);
    const { code, stdout, stderr } = await whoami();
    assert.equal(code, 1);
    assert.ok(!/refresh-0|token-0/.test(stdout + stderr), stderr);
  }
});

test('a refresh token does not follow a redirect to another service', async () => {
  const other = await AuthServer.start();
  try {
    signedIn(-10);
    api.answer = ({ path }) => ({ status: 307, body: '', headers: { location: other.url + path } });
    const { code, stderr } = await whoami();
    assert.deepEqual([code, other.seen], [1, []]);
    assert.match(stderr, /unexpected response with status 307, not from a Berth service/);
  } finally {
    other.close();
  }
});

test('an access token goes to no other service by redirect, --url or BERTH_URL', async () => {
  const other = await AuthServer.start();
  try {
    signedIn(3_600);
    for (const [args, env] of [
      [['--url', other.url], {}],
      [[], { BERTH_URL: other.url }],
    ] as const) {
      const { code, stderr } = await berth(['whoami', ...args], { env: { HOME: home, ...env } });
      assert.deepEqual([code, other.seen], [2, []]);
      assert.match(stderr, /is signed in to http:\/\/127\.0\.0\.1:\d+, not to .*\n/);
    }
    api.answer = ({ path }) => ({ status: 307, body: '', headers: { location: other.url + path } });
    await whoami();
    assert.deepEqual(
      other.seen.map(({ authorization }) => authorization),
      other.seen.map(() => undefined),
    );
    assert.ok(other.seen.length > 0, 'the redirection was followed');
  } finally {
    other.close();
  }
});

test('two processes that change different profiles at once lose neither change', async () => {
  const names = ['one', 'two', 'three', 'four', 'five'];
  writeProfiles(
    home,
    Object.fromEntries(names.map((name) => [name, { url: api.url, session: sessionOf('x', 'refresh', -10) }])),
  );
  const ended = await Promise.all(
    names.map(async (name) => await berth(['logout', '--profile', name], { env: { HOME: home } })),
  );
  assert.deepEqual(
    ended.map(({ code }) => code),
    names.map(() => 0),
  );
  const { profiles } = readProfiles(home);
  assert.deepEqual(profiles, Object.fromEntries(names.map((name) => [name, { url: api.url }])));
  assertTidy();
});
