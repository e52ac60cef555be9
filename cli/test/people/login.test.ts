// `berth login`, `logout` and `profile` against the real service, with its approval page. Refusals:
// login-refusals.test.ts.
import assert from 'node:assert/strict';
import { chmodSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { after, before, test } from 'node:test';
import { sql } from 'kysely';
import type { Profile } from '../../src/service/profile-file.ts';
import { PASSWORD, startSite, type TestSite, type TestVisitor } from '../../../api/test/pages/site.ts';
import { statusOfMe } from '../../../api/test/sign-in/client.ts';
import { untilTrue } from '../../../os/test/until.ts';
import { berth, cleanEnvironment, MAIN, newHome, startBerth, type Ended } from '../world/berth.ts';
import { profilePath, readProfiles, sessionOf, writeProfiles } from '../world/profile.ts';
import { PseudoTerminal } from '../../../os/test/pseudo-terminal.ts';

let site: TestSite;
before(async () => {
  site = await startSite();
});
after(async () => await site.close());

interface Person {
  visitor: TestVisitor;
  email: string;
  userId: string;
}

/** A user in some orgs, signed in in a browser. */
async function person(orgs = 0): Promise<Person & { orgIds: string[] }> {
  const { userId, email } = await site.account();
  const visitor = site.visitor();
  await visitor.signIn(email);
  const orgIds: string[] = [];
  for (let made = 0; made < orgs; made += 1) {
    const { orgId } = made === 0 ? site.api : await site.api.makeOrg();
    await site.api.db.insertInto('membership').values({ org_id: orgId, user_id: userId, role: 'owner' }).execute();
    orgIds.push(orgId);
  }
  return { visitor, userId, email, orgIds };
}

const USER_CODE = /\b([A-Z2-9]{4}-[A-Z2-9]{4})\b/;

/** Starts a login and returns its user code. */
async function startLogin(
  home: string,
  args: readonly string[] = [],
): Promise<ReturnType<typeof startBerth> & { userCode: string }> {
  const run = startBerth(['login', '--url', site.url, ...args], { env: { HOME: home } });
  run.child.stdin.end();
  await untilTrue('it shows the code', () => Promise.resolve(USER_CODE.test(run.seen.stderr)));
  return { ...run, userCode: USER_CODE.exec(run.seen.stderr)?.[1] ?? '' };
}

async function decide({ visitor }: Person, userCode: string, decision: 'approve' | 'deny'): Promise<void> {
  const { heading } = await visitor.post('/device', { user_code: userCode, decision });
  assert.equal(heading, decision === 'approve' ? 'The device is signed in' : 'The device was denied');
}

async function signedIn(somebody: Person, home: string, args: readonly string[] = []): Promise<Ended> {
  const { userCode, ended } = await startLogin(home, args);
  await decide(somebody, userCode, 'approve');
  return await ended;
}

/** The stored session of a sign-in, without running one. */
async function keptSession({ email }: Person): Promise<NonNullable<Profile['session']>> {
  const login = await site.signIn.withPassword(
    { email, password: PASSWORD },
    { address: '192.0.2.9', userAgent: null },
  );
  const { token } = await site.signIn.issueSessionToken(login);
  return sessionOf(token, login.credential, 3_600);
}

test('an approved login signs in; logout ends it at the service and locally', async () => {
  const home = newHome();
  const ada = await person(1);
  const { code, stdout, stderr } = await signedIn(ada, home);
  const [orgId = ''] = ada.orgIds;
  assert.deepEqual([code, stdout], [0, `signed in to ${site.url} as ${ada.email}, org ${orgId} (First org)\n`]);
  const userCode = USER_CODE.exec(stderr)?.[1];
  assert.match(
    stderr,
    new RegExp(`^To sign in, open this page, and approve it if it shows the code ${userCode}:$`, 'm'),
  );
  assert.match(stderr, new RegExp(`^ {2}http://berth\\.example\\.test/device\\?user_code=${userCode}$`, 'm'));
  assert.match(stderr, /^On another device, open http:\/\/berth\.example\.test\/device and enter the code\.$/m);

  assert.deepEqual(
    [statSync(profilePath(home)).mode & 0o777, statSync(dirname(profilePath(home))).mode & 0o777],
    [0o600, 0o700],
  );
  const { current, profiles } = readProfiles(home);
  const { session } = profiles['default'] ?? {};
  assert.deepEqual(
    { current, profiles },
    { current: 'default', profiles: { default: { url: site.url, orgId, session } } },
  );
  const { token = '', refreshToken = '' } = session ?? {};
  site.api.secret(token, 'the session token');
  assert.ok(![token, refreshToken].some((secret) => secret === '' || (stdout + stderr).includes(secret)));

  const me = await berth(['whoami'], { env: { HOME: home } });
  assert.deepEqual([me.code, me.stderr], [0, '']);
  assert.equal(
    me.stdout,
    `user        ${ada.email}\nname        Ada Test\ncredential  profile default\n` +
      `service     ${site.url}\norg         ${orgId} (First org)\n`,
  );

  assert.equal(await statusOfMe(site.url, token), 200);
  const out = await berth(['logout'], { env: { HOME: home } });
  assert.deepEqual([out.code, out.stdout, out.stderr], [0, `signed out of ${site.url}\n`, '']);
  assert.equal(await statusOfMe(site.url, token), 401);
  assert.deepEqual(readProfiles(home).profiles, { default: { url: site.url, orgId } });
  const again = await berth(['whoami'], { env: { HOME: home } });
  assert.deepEqual([again.code, again.stdout], [4, '']);
  assert.match(again.stderr, /^berth: not signed in\n {2}sign in with berth login, or /);
  assert.deepEqual(await berth(['logout'], { env: { HOME: home } }), {
    code: 0,
    stdout: '',
    stderr: 'the profile default is not signed in\n',
  });
});

test('a denied or expired login has exit code 4 and stores nothing', async () => {
  const ada = await person();
  for (const [decided, expected] of [
    [async (userCode: string) => await decide(ada, userCode, 'deny'), /^berth: the sign-in was denied$/m],
    [
      async (userCode: string) => {
        const stored = userCode.replace('-', '');
        await sql`
          update "deviceCode" set "expiresAt" = now() - interval '1 second'
          where "userCode" = ${stored}`.execute(site.api.db);
      },
      new RegExp(
        `^berth: the sign-in was not approved before its code expired\\n {2}run berth login --url ${site.url} again$`,
        'm',
      ),
    ],
  ] as const) {
    const home = newHome();
    const { userCode, ended } = await startLogin(home);
    await decided(userCode);
    const { code, stdout, stderr } = await ended;
    assert.deepEqual([code, stdout], [4, '']);
    assert.match(stderr, expected);
    assert.throws(() => readFileSync(profilePath(home)), { code: 'ENOENT' });
  }
});

test('Ctrl-C during the wait exits with 130', async () => {
  const { child, ended } = await startLogin(newHome());
  child.kill('SIGINT');
  const { code, stdout, stderr } = await ended;
  assert.deepEqual([code, stdout], [130, '']);
  assert.match(stderr, /^berth: stopped by SIGINT$/m);
});

test('without a terminal, login with several orgs asks for --org, which accepts only existing orgs', async () => {
  const home = newHome();
  const ada = await person(2);
  const { code, stderr } = await signedIn(ada, home);
  assert.equal(code, 0);
  assert.match(stderr, /^you belong to 2 orgs: list them with berth org ls, choose one with berth org use ID$/m);
  assert.equal(readProfiles(home).profiles['default']?.orgId, undefined);

  const [, second = ''] = ada.orgIds;
  assert.match((await signedIn(ada, home, ['--org', second])).stdout, new RegExp(`, org ${second} `));
  assert.equal(readProfiles(home).profiles['default']?.orgId, second);

  const key = site.api.secret(await site.api.makeKey({}), 'the key');
  const options = { env: { HOME: home }, stdin: key };
  const refused = await berth(['login', '--url', site.url, '--with-key', '--org', second], options);
  assert.deepEqual(
    [refused.code, refused.stderr],
    [1, `berth: this account has no org ${second} at ${site.url}\n  berth org ls --url ${site.url} lists your orgs\n`],
  );
});

test('on a terminal login asks for the org, and Enter opens the page in the browser', async () => {
  const home = newHome();
  const ada = await person(2);
  const bin = join(home, 'bin');
  mkdirSync(bin);
  writeFileSync(join(bin, 'xdg-open'), `#!/bin/sh\nprintf '%s|' "$#" "$@" > '${home}/opened'\n`);
  chmodSync(join(bin, 'xdg-open'), 0o755);
  const env = cleanEnvironment({ HOME: home, PATH: `${bin}:${process.env['PATH']}`, DISPLAY: ':7' });
  const screen = new PseudoTerminal(process.execPath, [MAIN, 'login', '--url', site.url], env);
  await screen.shows('Press Enter to open the page in a browser.');
  const [, userCode = ''] = await screen.shows(USER_CODE);
  screen.type('\r');
  await untilTrue('the page is opened', () => Promise.resolve(contentOf(join(home, 'opened')) !== ''));
  await untilTrue('all of it is written', () =>
    Promise.resolve(contentOf(join(home, 'opened')).split('|').length === 3),
  );
  assert.equal(contentOf(join(home, 'opened')), `1|http://berth.example.test/device?user_code=${userCode}|`);
  await decide(ada, userCode, 'approve');
  await screen.shows('Default org? [1-2]');
  screen.type('9\r');
  await screen.shows(/\[1-2\][\s\S]*\[1-2\]/);
  screen.type('2\r');
  assert.equal(await screen.ended(), 0);
  const chosen = readProfiles(home).profiles['default']?.orgId ?? '';
  assert.ok(ada.orgIds.includes(chosen));
  assert.match(screen.text, new RegExp(`signed in to ${site.url} as ${ada.email}, org ${chosen} `));
});

test('a key from stdin is stored after a test request; a refused one is not', async () => {
  const home = newHome();
  const key = site.api.secret(await site.api.makeKey({}), 'the key');
  const { code, stdout, stderr } = await berth(['login', '--url', site.url, '--with-key'], {
    env: { HOME: home },
    stdin: `${key}\n`,
  });
  assert.deepEqual([code, stderr], [0, '']);
  assert.equal(stdout, `signed in to ${site.url} as owner@example.test, org ${site.api.orgId} (First org)\n`);
  assert.deepEqual(readProfiles(home).profiles, { default: { url: site.url, apiKey: key, orgId: site.api.orgId } });
  assert.equal(statSync(profilePath(home)).mode & 0o777, 0o600);
  assert.equal((await berth(['whoami'], { env: { HOME: home } })).code, 0);

  for (const [stdin, expectedCode, expected] of [
    [key.slice(0, -1), 4, /\(unauthenticated\)/],
    ['', 2, /stdin is empty; expected the API key/],
    [`${key} ${key}`, 4, /stdin has no valid API key: spaces/],
    ['x'.repeat(100_000), 2, /stdin has more than 65536 bytes/],
  ] as const) {
    const refused = await berth(['login', '--url', site.url, '--with-key', '--profile', 'other'], {
      env: { HOME: home },
      stdin,
    });
    assert.deepEqual([refused.code, refused.stdout], [expectedCode, '']);
    assert.match(refused.stderr, expected);
    assert.ok(!refused.stderr.includes(key.slice(0, -1)));
    assert.deepEqual(Object.keys(readProfiles(home).profiles), ['default']);
  }
  const out = await berth(['logout'], { env: { HOME: home } });
  assert.deepEqual([out.code, out.stderr], [0, 'the API key remains valid: revoke it with berth key revoke ID\n']);
  assert.equal(await statusOfMe(site.url, key), 200);
});

test('a key typed at a terminal is not echoed', async () => {
  const home = newHome();
  const key = site.api.secret(await site.api.makeKey({}), 'the key');
  const screen = new PseudoTerminal(
    process.execPath,
    [MAIN, 'login', '--url', site.url, '--with-key'],
    cleanEnvironment({ HOME: home }),
  );
  await screen.shows('API key (not shown): ');
  await untilTrue('what is typed is not shown', async () => /-echo\b/.test(await screen.settings()));
  screen.type(`x\u007F${key}\r`);
  assert.equal(await screen.ended(), 0);
  assert.match(screen.text, /signed in to /);
  assert.ok(!screen.text.includes(key.slice(4)));
  assert.equal(readProfiles(home).profiles['default']?.apiKey, key);
});

test('profiles are listed without credentials, chosen and removed; removal signs out', async () => {
  const home = newHome();
  const env = { HOME: home };
  assert.deepEqual(await berth(['profile', 'ls'], { env }), {
    code: 0,
    stdout: '',
    stderr: 'no profiles; create one with berth login\n',
  });
  const ada = await person(1);
  const [first, second] = [await keptSession(ada), await keptSession(ada)];
  const { orgId } = site.api;
  writeProfiles(home, {
    default: { url: site.url, session: first, orgId },
    staging: { url: site.url, session: second, orgId },
  });
  const key = site.api.secret(await site.api.makeKey({}), 'the key');
  const third = await berth(['login', '--url', site.url, '--with-key', '--profile', 'ci'], { env, stdin: key });
  assert.equal(
    third.stderr,
    'the current profile is still default: switch with berth profile use ci, or use --profile ci\n',
  );
  const { profiles } = readProfiles(home);
  const token = profiles['staging']?.session?.token ?? '';

  const listed = await berth(['profile', 'ls'], { env });
  const service = site.url.padEnd(Math.max(7, site.url.length));
  assert.equal(
    listed.stdout,
    [
      `NAME     IN USE  ${'SERVICE'.padEnd(service.length)}  CREDENTIAL  ${'ORG'.padEnd(orgId.length)}  PROJECT`,
      `ci       -       ${service}  API key     ${orgId}  -`,
      `default  yes     ${service}  sign-in     ${orgId}  -`,
      `staging  -       ${service}  sign-in     ${orgId}  -`,
      '',
    ].join('\n'),
  );
  const asJson = await berth(['profile', 'ls', '--json'], { env });
  assert.deepEqual((JSON.parse(asJson.stdout) as { profiles: unknown[] }).profiles[2], {
    name: 'staging',
    url: site.url,
    credential: 'sign-in',
    orgId,
    projectId: null,
    inUse: false,
  });
  const secrets = [key, token, profiles['staging']?.session?.refreshToken ?? ''];
  assert.ok(secrets.every((secret) => secret !== '' && !(listed.stdout + asJson.stdout).includes(secret)));

  assert.deepEqual(await berth(['profile', 'use', 'staging'], { env }), {
    code: 0,
    stdout: 'switched to profile staging\n',
    stderr: '',
  });
  assert.match((await berth(['whoami'], { env })).stdout, /^credential {2}profile staging$/m);
  assert.match(
    (await berth(['whoami'], { env: { ...env, BERTH_PROFILE: 'default' } })).stdout,
    /^credential {2}profile default$/m,
  );
  const unknown = await berth(['profile', 'use', 'nowhere'], { env });
  assert.deepEqual(
    [unknown.code, unknown.stderr],
    [
      2,
      "berth: no profile named 'nowhere'\n" +
        '  known profiles: default, staging, ci; create it with berth login --profile nowhere\n',
    ],
  );

  assert.deepEqual(await berth(['profile', 'rm', 'staging'], { env }), {
    code: 0,
    stdout: 'removed the profile staging\n',
    stderr: '',
  });
  assert.equal(await statusOfMe(site.url, token), 401);
  assert.equal(readProfiles(home).current, 'default');
  assert.equal((await berth(['profile', 'rm', 'ci'], { env })).code, 0);
  assert.deepEqual(Object.keys(readProfiles(home).profiles), ['default']);
});

test('an expired token of a real sign-in is refreshed, and a revoked sign-in is reported', async () => {
  const home = newHome();
  const ada = await person(1);
  const login = await site.signIn.withPassword(
    { email: ada.email, password: PASSWORD },
    { address: '192.0.2.9', userAgent: null },
  );
  const expired = {
    token: 'bst_spent',
    refreshToken: login.credential,
    expiresAt: new Date(Date.now() - 1_000).toISOString(),
  };
  writeProfiles(home, { default: { url: site.url, session: expired } });
  assert.equal((await berth(['whoami'], { env: { HOME: home } })).code, 0);
  const { session } = readProfiles(home).profiles['default'] ?? {};
  assert.equal(await statusOfMe(site.url, session?.token ?? ''), 200);
  assert.ok(Date.parse(session?.expiresAt ?? '') > Date.now() + 50 * 60_000);

  await site.signIn.endLogin(login.loginId);
  const ended = await berth(['whoami'], { env: { HOME: home } });
  assert.deepEqual([ended.code, ended.stdout], [4, '']);
  assert.match(ended.stderr, /\(unauthenticated\)\n {2}sign in with berth login/);
  writeProfiles(home, { default: { url: site.url, session: expired } });
  const refused = await berth(['whoami'], { env: { HOME: home } });
  assert.deepEqual(
    [refused.code, refused.stderr],
    [4, `berth: the sign-in at ${site.url} has ended\n  sign in again with berth login\n`],
  );
});

function contentOf(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
}

test('sign-in ls lists the sign-ins, end ends one, and logout --all all of them', async () => {
  const home = newHome();
  const ada = await person();
  assert.equal((await signedIn(ada, home)).code, 0);
  const other = await keptSession(ada);
  const run = async (...args: string[]): Promise<Ended> => await berth(args, { env: { HOME: home } });
  const listed = JSON.parse((await run('sign-in', 'ls', '--json')).stdout).signIns as {
    id: string;
    current: boolean;
  }[];
  assert.deepEqual(
    listed.map(({ current }) => current),
    [false, true, false],
  );
  assert.match((await run('sign-in', 'ls')).stdout, /berth\//);
  const ended = await run('sign-in', 'end', listed[0]?.id ?? '', '--yes');
  assert.equal(ended.stdout, `ended the sign-in ${listed[0]?.id}\n`);
  assert.equal(await statusOfMe(site.url, other.token), 401);
  const out = await run('logout', '--all');
  assert.equal(out.stdout, `ended 1 other sign-in\nsigned out of ${site.url}\n`);
  assert.equal((await ada.visitor.get('/sign-ins')).status, 303);
});
