// `berth ssh` and `berth known-host` against a fake API, with a fake ssh. The real one:
// e2e/connections/ssh.long.test.ts.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmod, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, afterEach, before, test } from 'node:test';
import { ApiServer, refusal, TOKEN } from '../world/api-server.ts';

const MAIN = join(import.meta.dirname, '../../src/main.ts');
const HOST_KEY = `ssh-ed25519 ${'C'.repeat(68)}`;
/** Prints its arguments and known_hosts file; exits with the code in the file beside it. */
const PROGRAM = `#!/bin/sh
for word in "$@"; do
  echo "[$word]"
  case $word in UserKnownHostsFile=*) file=\${word#*=}; file=\${file#?}; cat "\${file%?}" ;; esac
done
. "$(dirname "$0")/end"
`;

let api: ApiServer;
let folder: string;
let asked: string[];
before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'berth-ssh verb-'));
  await writeFile(join(folder, 'ssh'), PROGRAM);
  await chmod(join(folder, 'ssh'), 0o755);
  api = await ApiServer.start();
});
after(async () => {
  api.close();
  await rm(folder, { recursive: true });
});
afterEach(() => {
  api.refuse = null;
});

interface Ended {
  code: number | null;
  stdout: string;
  stderr: string;
}

async function run(
  verb: string[],
  {
    end = 'exit 0',
    env = {},
    key = 'SHA256:abc',
  }: { end?: string; env?: Record<string, string>; key?: string | null } = {},
): Promise<Ended> {
  asked = [];
  api.json = ({ method, url, headers }) => {
    asked.push(`${method} ${url} ${headers.authorization}`);
    return { ssh: { user: 'berth', hostKey: HOST_KEY, authorizedKeyFingerprint: key } };
  };
  await writeFile(join(folder, 'end'), end);
  const child = spawn(process.execPath, [MAIN, ...verb], {
    env: { ...api.environment, PATH: `${folder}:${process.env['PATH']}`, TMPDIR: folder, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const ended = { code: null as number | null, stdout: '', stderr: '' };
  child.stdout.setEncoding('utf8').on('data', (chunk: string) => (ended.stdout += chunk));
  child.stderr.setEncoding('utf8').on('data', (chunk: string) => (ended.stderr += chunk));
  [ended.code] = (await once(child, 'close')) as [number | null];
  return ended;
}

test('ssh runs through the tunnel, knows only this host key and gets all arguments unchanged', async () => {
  const { code, stdout, stderr } = await run([
    'ssh',
    'sbx_abcabcabcabcabcabcabcabc',
    '-i',
    'a key',
    '-L',
    '8080:localhost:80',
    '--',
    'ls',
    '-l',
    "it's 100 %",
  ]);
  assert.deepEqual([code, stderr], [0, '']);
  assert.deepEqual(asked, [`GET /v1/sandboxes/sbx_abcabcabcabcabcabcabcabc/ssh Bearer ${TOKEN}`]);
  const words = stdout.split('\n');
  assert.ok(words.includes(`sbx_abcabcabcabcabcabcabcabc ${HOST_KEY}`), stdout);
  assert.ok(words.includes('[StrictHostKeyChecking=yes]'));
  assert.ok(words.includes('[User=berth]'));
  assert.ok(words.includes(`[ProxyCommand='${process.execPath}' '${MAIN}' tunnel %h]`), stdout);
  const rest = words.slice(words.indexOf('[sbx_abcabcabcabcabcabcabcabc]') + 1, -1);
  assert.deepEqual(rest, ['[-i]', '[a key]', '[-L]', '[8080:localhost:80]', '[--]', '[ls]', '[-l]', "[it's 100 %]"]);
  assert.ok(!stdout.includes(TOKEN), 'the API key is in no argument');
  assert.deepEqual((await readdir(folder)).sort(), ['end', 'ssh'], 'no file is left');
});

test('ssh forwards the agent only if the first argument says so', async () => {
  const forwarded = async (...args: string[]) =>
    !(await run(['ssh', 'sbx_abcabcabcabcabcabcabcabc', ...args])).stdout.split('\n').includes('[ForwardAgent=no]');
  assert.equal(await forwarded(), false);
  assert.equal(await forwarded('ls', '-A'), false);
  assert.equal(await forwarded('-A', 'git', 'pull'), true);
});

for (const [end, code] of [
  ['exit 7', 7],
  ['exit 255', 255],
  ['kill -TERM $$', 143],
] as const) {
  test(`an ssh exit by '${end}' gives exit code ${code}`, async () => {
    assert.equal((await run(['ssh', 'sbx_abcabcabcabcabcabcabcabc'], { end })).code, code);
  });
}

test('without an ssh client berth says what to install', async () => {
  const { code, stderr } = await run(['ssh', 'sbx_abcabcabcabcabcabcabcabc'], { env: { PATH: join(folder, 'empty') } });
  assert.deepEqual(
    [code, stderr],
    [
      255,
      'berth: the ssh client is not installed on this machine\n' +
        '  install it (apt install openssh-client), or use berth shell\n',
    ],
  );
});

test('a sandbox created without a key is reported, and ssh does not run', async () => {
  const { code, stdout, stderr } = await run(['ssh', 'sbx_abcabcabcabcabcabcabcabc'], { key: null });
  assert.deepEqual([code, stdout], [255, '']);
  assert.match(
    stderr,
    /^berth: cannot connect by ssh: the sandbox was created without an SSH key\n {2}create a sandbox with --ssh-key FILE, or use berth shell sbx_abcabcabcabcabcabcabcabc/,
  );
});

test('only the known_hosts line is printed', async () => {
  const { code, stdout, stderr } = await run(['known-host', 'sbx_abcabcabcabcabcabcabcabc']);
  assert.deepEqual([code, stdout, stderr], [0, `sbx_abcabcabcabcabcabcabcabc ${HOST_KEY}\n`, '']);
});

/** As with ssh itself, failures before the remote command are 255, except usage errors. */
for (const [verb, failed, signIn] of [
  ['ssh', 255, 255],
  ['known-host', 1, 4],
] as const) {
  test(`${verb}: a refusal is printed with the API's message and a remedy`, async () => {
    for (const [status, errorCode, message, expected, remedy] of [
      [
        404,
        'sandbox_not_found',
        'there is no sandbox sbx_abcabcabcabcabcabcabcabc',
        failed,
        '  use the id of a sandbox that berth sandbox ls lists\n',
      ],
      [
        401,
        'unauthenticated',
        'the bearer token is unknown',
        signIn,
        '  sign in with berth login; if BERTH_API_KEY is set, correct or unset it\n',
      ],
    ] as const) {
      api.refuse = refusal(status, errorCode, message);
      const { code, stdout, stderr } = await run([verb, 'sbx_abcabcabcabcabcabcabcabc']);
      assert.deepEqual([code, stdout, stderr], [expected, '', `berth: ${message} (${errorCode})\n${remedy}`]);
    }
    api.refuse = { status: 200, body: '<html>', type: 'text/html' };
    const { code, stdout, stderr } = await run([verb, 'sbx_abcabcabcabcabcabcabcabc']);
    assert.deepEqual([code, stdout], [failed, '']);
    assert.match(
      stderr,
      /unexpected response with status 200, not from a Berth service \(invalid_answer\)\n {2}check the URL of the API: --url, BERTH_URL or the profile/,
    );
  });

  for (const [what, id, env, expected, words] of [
    ['no key', 'sbx_abcabcabcabcabcabcabcabc', { BERTH_API_KEY: '' }, signIn, /^berth: not signed in\n.*BERTH_API_KEY/],
    [
      'a key with a line end',
      'sbx_abcabcabcabcabcabcabcabc',
      { BERTH_API_KEY: `${TOKEN}\n` },
      signIn,
      /BERTH_API_KEY has no valid API key: spaces, line breaks/,
    ],
    [
      'a server that is not there',
      'sbx_abcabcabcabcabcabcabcabc',
      { BERTH_URL: 'http://127.0.0.1:10' },
      failed,
      /no connection: connect ECONNREFUSED 127\.0\.0\.1:10\. The request was not sent .*\n {2}check the URL of the API: --url, BERTH_URL or the profile; if the service is not running, start it with \.\/berth up/,
    ],
    [
      'no URL',
      'sbx_abcabcabcabcabcabcabcabc',
      { BERTH_URL: 'somewhere' },
      2,
      /BERTH_URL 'somewhere' is invalid: expected an http or https URL/,
    ],
    ['an empty name', '', {}, 2, /invalid sandbox ''/],
    ['an option in place of the sandbox', '--port=1', {}, 2, /unknown option '--port=1'/],
  ] as const) {
    test(`${verb}: ${what} is reported with exit code ${expected}`, async () => {
      const { code, stdout, stderr } = await run([verb, id], { env });
      assert.deepEqual([code, stdout], [expected, '']);
      assert.match(stderr, words);
      assert.ok(!stderr.includes(TOKEN) && !/ at .*\.ts:/.test(stderr), stderr);
    });
  }
}
