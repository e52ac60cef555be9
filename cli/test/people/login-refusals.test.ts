// Sign-in with failures of the service, the network and the file system.
import assert from 'node:assert/strict';
import { chmodSync, mkdirSync, readdirSync, statSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { once } from 'node:events';
import { hostname } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, test } from 'node:test';
import { AuthServer, type AuthAnswer, type SeenRequest } from '../world/auth-server.ts';
import { berth, newHome, startBerth, type Ended } from '../world/berth.ts';
import { profilePath, readProfiles, sessionOf, writeProfiles } from '../world/profile.ts';

let api: AuthServer;
let home: string;
beforeEach(async () => {
  api = await AuthServer.start();
  home = newHome();
});
afterEach(() => api.close());

const DEVICE = {
  device_code: 'device-code-of-the-test',
  user_code: 'ABCD-EFGH',
  verification_uri: 'https://berth.example.test/device',
  verification_uri_complete: 'https://berth.example.test/device?user_code=ABCD-EFGH',
  expires_in: 900,
  interval: 1,
};
const refusedWith = (error: string, status = 400): AuthAnswer => ({
  status,
  body: { error, error_description: `it is ${error}` },
});

/** Serves a device code and the polls in order, repeating the last. */
function answering(polls: readonly (AuthAnswer | 'tokens')[], device: Record<string, unknown> = DEVICE): void {
  let polled = 0;
  api.answer = ({ path }: SeenRequest) => {
    if (path === '/auth/device/code') return { status: 200, body: device };
    if (path !== '/auth/token') return undefined;
    const poll = polls[Math.min(polled, polls.length - 1)] ?? 'tokens';
    polled += 1;
    if (poll !== 'tokens') return poll;
    api.tokens.add('token-0');
    return {
      status: 200,
      body: { access_token: 'token-0', token_type: 'Bearer', expires_in: 3_600, refresh_token: 'refresh-0' },
    };
  };
}
const login = async (args: readonly string[] = [], env: Record<string, string> = {}): Promise<Ended> =>
  await berth(['login', '--url', api.url, ...args], { env: { HOME: home, ...env } });
const polls = (): SeenRequest[] => api.seen.filter(({ path }) => path === '/auth/token');

test('login polls as berth-cli and retries temporary failures', async () => {
  answering([
    refusedWith('authorization_pending'),
    refusedWith('temporarily_unavailable', 503),
    { status: 502, body: '<html>' },
    'tokens',
  ]);
  const { code, stdout, stderr } = await login();
  assert.deepEqual([code, stdout], [0, `signed in to ${api.url} as ada@example.test\n`]);
  assert.match(stderr, /^no orgs yet; create one with berth org create NAME$/m);
  assert.deepEqual(api.seen[0]?.form, { client_id: 'berth-cli' });
  assert.deepEqual(polls()[0]?.form, {
    grant_type: 'urn:ietf:params:oauth:grant-type:device_code',
    device_code: DEVICE.device_code,
    client_id: 'berth-cli',
  });
  assert.equal(polls().length, 4);
  assert.ok(!stderr.includes(DEVICE.device_code));
});

test('login adds five seconds between polls on slow_down', async () => {
  const at: number[] = [];
  answering([refusedWith('slow_down'), 'tokens']);
  const { answer } = api;
  api.answer = (seen) => {
    if (seen.path === '/auth/token') at.push(Date.now());
    return answer(seen);
  };
  assert.equal((await login()).code, 0);
  const [first = 0, second = 0] = at;
  // Lower bound required by the protocol.
  assert.ok(second - first >= 6_000, `${second - first} ms`);
});

test('login stops polling a code once it expired', async () => {
  answering([refusedWith('authorization_pending')], { ...DEVICE, expires_in: 2 });
  const { code, stderr } = await login();
  assert.equal(code, 4);
  assert.match(stderr, /^berth: the sign-in was not approved before its code expired$/m);
});

for (const [what, device] of [
  ['a page that is no web page', { ...DEVICE, verification_uri_complete: 'file:///etc/passwd' }],
  ['a page that is an option', { ...DEVICE, verification_uri: '--help' }],
  ['no code', { ...DEVICE, user_code: undefined }],
] as const) {
  test(`${what} from the service is an invalid response`, async () => {
    answering(['tokens'], device);
    const { code, stderr } = await login();
    assert.equal(code, 1);
    assert.match(stderr, /\/auth\/device\/code: unexpected response with status 200, not from a Berth service/);
    assert.equal(polls().length, 0);
  });
}

test("control characters in the service's code do not reach the terminal", async () => {
  answering(['tokens'], { ...DEVICE, user_code: '\u001B[2JABCD' });
  const { stderr } = await login();
  assert.ok(!stderr.includes('\u001B'), JSON.stringify(stderr));
});

test('login reports an unreachable service and a server that is not Berth', async () => {
  const closed = await berth(['login', '--url', 'http://127.0.0.1:9'], { env: { HOME: home } });
  assert.deepEqual([closed.code, closed.stdout], [1, '']);
  assert.match(
    closed.stderr,
    /^berth: cannot reach http:\/\/127\.0\.0\.1:9: .+\n {2}check the URL of the API: --url, BERTH_URL or the profile; if the service is not running, start it with \.\/berth up\n$/,
  );
  api.answer = () => ({ status: 200, body: '<html>' });
  assert.match((await login()).stderr, /unexpected response with status 200, not from a Berth service/);
  api.answer = () => ({
    status: 429,
    body: { error: 'slow_down', error_description: 'too many' },
    headers: { 'retry-after': '30' },
  });
  const busy = await login();
  assert.deepEqual([busy.code, busy.stderr], [1, 'berth: cannot sign in: too many (slow_down)\n  try again in 30 s\n']);
  for (const url of ['ftp://x', 'somewhere', 'https://user:secret@x.test', 'https://x.test/?a=b']) {
    const { code, stderr } = await berth(['login', '--url', url], { env: { HOME: home } });
    assert.equal(code, 2);
    assert.match(
      stderr,
      /^berth: --url '.*' is invalid: expected an http or https URL such as https:\/\/berth\.example\.com/,
    );
  }
});

test('only the first sign-in over plain http to another host warns that the token can be read', async () => {
  // The host name is not loopback by name, whatever its address.
  const server = createServer((request, response) => {
    const { url: path = '' } = request;
    const body =
      path === '/auth/device/code'
        ? DEVICE
        : { access_token: 'token-0', token_type: 'Bearer', expires_in: 3_600, refresh_token: 'r' };
    response.writeHead(path.startsWith('/v1') ? 401 : 200).end(JSON.stringify(body));
  });
  server.listen(0);
  await once(server, 'listening');
  try {
    const url = `http://${hostname()}:${(server.address() as { port: number }).port}`;
    const remote = async (): Promise<Ended> => await berth(['login', '--url', url], { env: { HOME: home } });
    assert.match(
      (await remote()).stderr,
      /^warning: http:\/\/.* is not encrypted: others on the network can read the token and act as you$/m,
    );
    assert.equal(
      readProfiles(home).profiles['default']?.session?.token,
      'token-0',
      'kept, though the next call was refused',
    );
    assert.doesNotMatch((await remote()).stderr, /warning/);
  } finally {
    server.close();
    server.closeAllConnections();
  }
  answering(['tokens']);
  assert.doesNotMatch((await login(['--profile', 'here'])).stderr, /warning/);
});

test('logout from an unreachable service forgets the sign-in locally, and says so', async () => {
  writeProfiles(home, { default: { url: 'http://127.0.0.1:9', session: sessionOf('token-0', 'refresh-0', 3_600) } });
  const { code, stdout, stderr } = await berth(['logout'], { env: { HOME: home } });
  assert.deepEqual([code, stdout], [0, 'signed out of http://127.0.0.1:9\n']);
  assert.match(
    stderr,
    /^cannot sign out at the service; the sign-in there expires 30 days after its last use: cannot reach http:\/\/127\.0\.0\.1:9: /,
  );
  assert.deepEqual(readProfiles(home).profiles, { default: { url: 'http://127.0.0.1:9' } });
});

test('logout sends the refresh token only to its own service, despite BERTH_URL', async () => {
  const other = await AuthServer.start();
  try {
    writeProfiles(home, { default: { url: api.url, session: sessionOf('token-0', 'refresh-0', 3_600) } });
    assert.equal((await berth(['logout', '--url', other.url], { env: { HOME: home, BERTH_URL: other.url } })).code, 0);
    assert.deepEqual(
      [api.seen.map(({ path, form }) => [path, form]), other.seen],
      [[['/auth/revoke', { token: 'refresh-0' }]], []],
    );
  } finally {
    other.close();
  }
});

for (const [what, content, expected] of [
  ['no JSON', '{', /is not a valid profile file: the file: /],
  ['something else', '{"profiles":[]}', /is not a valid profile file: profiles: /],
  [
    'a profile without a service',
    '{"profiles":{"default":{}}}',
    /is not a valid profile file: profiles\.default\.url: /,
  ],
] as const) {
  test(`a profile file that is ${what} is reported with a remedy, and left unchanged`, async () => {
    writeProfiles(home, {});
    writeFileSync(profilePath(home), content);
    for (const args of [['login', '--url', api.url], ['whoami'], ['profile', 'ls'], ['profile', 'use', 'x']]) {
      const { code, stdout, stderr } = await berth(args, { env: { HOME: home } });
      assert.deepEqual([code, stdout], [1, '']);
      assert.match(stderr, expected);
      assert.match(
        stderr,
        /\n {2}repair it, or remove it and sign in again with berth login( --url http:\/\/127\.0\.0\.1:\d+)?\n$/,
      );
    }
    assert.deepEqual([statSync(profilePath(home)).size, api.seen.length], [content.length, 0]);
  });
}

test('login asks for no approval if nothing can be written', async () => {
  writeFileSync(join(home, '.config'), '');
  const { code, stderr } = await login();
  assert.equal(code, 1);
  assert.match(stderr, /^berth: cannot (?:read|write) .*\/berth\/config\.json: E/);
  assert.deepEqual(api.seen, []);
});

test('a file and folder readable by others are made private', async () => {
  writeProfiles(home, { default: { url: api.url, session: sessionOf('token-0', 'refresh-0', -1) } });
  chmodSync(profilePath(home), 0o644);
  chmodSync(dirname(profilePath(home)), 0o755);
  assert.notEqual((await berth(['profile', 'use', 'default'], { env: { HOME: home } })).code, 1);
  assert.deepEqual(
    [statSync(profilePath(home)).mode & 0o777, statSync(dirname(profilePath(home))).mode & 0o777],
    [0o600, 0o700],
  );
});

test('the profile file is in XDG_CONFIG_HOME if that is an absolute folder', async () => {
  answering(['tokens']);
  const xdg = join(home, 'elsewhere');
  mkdirSync(xdg);
  assert.equal((await login([], { XDG_CONFIG_HOME: xdg })).code, 0);
  assert.deepEqual(readdirSync(join(xdg, 'berth')), ['config.json']);
  assert.equal((await login(['--profile', 'b'], { XDG_CONFIG_HOME: 'relative' })).code, 0);
  assert.deepEqual(Object.keys(readProfiles(home).profiles), ['b']);
});

test('login warns that BERTH_API_KEY in the environment overrides the sign-in', async () => {
  answering(['tokens']);
  assert.match(
    (await login([], { BERTH_API_KEY: 'brt_x' })).stderr,
    /^BERTH_API_KEY is set: commands use it instead of this sign-in$/m,
  );
});

test('a key on the command line is refused: it is read only from stdin', async () => {
  const run = startBerth(['login', '--url', api.url, '--with-key', 'brt_secret'], { env: { HOME: home } });
  run.child.stdin.end('brt_other');
  const { code } = await run.ended;
  assert.deepEqual([code, api.seen], [2, []]);
});
