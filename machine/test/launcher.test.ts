import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { cp, mkdir, mkdtemp, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { CHECKOUT } from '../src/config/folders.ts';

/** The checkout may be readable by root only, so the output of `id` simulates another user. */
const ADA = 1_000;
const AS_ADA = { id: `echo ${ADA}` };
const TOOLS = [
  'sh',
  'env',
  'dirname',
  'readlink',
  'cat',
  'sha256sum',
  'cut',
  'uname',
  'id',
  'stat',
  'getent',
  'flock',
  'mktemp',
  'date',
  'sed',
  'tr',
  'mkdir',
];

let folder: string;
before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'berth-launcher-'));
});
after(() => rm(folder, { recursive: true, force: true }));

interface Run {
  code: number;
  stdout: string;
  stderr: string;
}

function run(
  script: string,
  args: string[],
  options: { path: string; environment?: Record<string, string> },
): Promise<Run> {
  const env = { PATH: options.path, HOME: join(folder, 'ada'), ...options.environment };
  return new Promise((resolve) => {
    execFile(script, args, { env, timeout: 60_000 }, (error, stdout, stderr) => {
      resolve({ code: error === null ? 0 : Number(error.code ?? -1), stdout, stderr });
    });
  });
}

/** A folder of links to the system's programs, and of small scripts that replace others. */
async function pathWith(name: string, scripts: Record<string, string>): Promise<string> {
  const path = join(folder, name);
  await mkdir(path);
  for (const tool of TOOLS.filter((tool) => scripts[tool] === undefined))
    await symlink(`/usr/bin/${tool}`, join(path, tool));

  for (const [program, script] of Object.entries(scripts))
    await writeFile(join(path, program), `#!/bin/sh\n${script}\n`, { mode: 0o755 });

  return path;
}

/** A checkout as git gives it: without npm packages. */
async function freshCheckout(name: string): Promise<string> {
  const checkout = join(folder, name);
  await mkdir(checkout);
  for (const file of ['berth', 'package-lock.json', '.npmrc']) await cp(join(CHECKOUT, file), join(checkout, file));

  return join(checkout, 'berth');
}

test('a host without Node.js gets instructions to install it', async () => {
  const { code, stderr } = await run(await freshCheckout('no-node'), ['up'], {
    path: await pathWith('path-no-node', {}),
  });
  assert.equal(code, 1);
  assert.match(stderr, /^berth: Node\.js is missing\. Install Node\.js 20 or newer/);
});

test('an old Node.js is named with its version and path', async () => {
  const path = await pathWith('path-old-node', { node: 'case $1 in -p) echo 18;; *) echo v18.20.4;; esac' });
  const { code, stderr } = await run(await freshCheckout('old-node'), ['up'], { path });
  assert.equal(code, 1);
  assert.match(
    stderr,
    new RegExp(`^berth: Node\\.js v18\\.20\\.4 is too old: 20 or newer is needed, ${path}/node is not`),
  );
});

test('a missing npm is reported', async () => {
  const { code, stderr } = await run(await freshCheckout('no-npm'), ['up'], {
    path: await pathWith('path-no-npm', { node: 'echo 20' }),
  });
  assert.equal(code, 1);
  assert.match(stderr, /^berth: npm is missing/);
});

test('a failed npm ci shows the output of npm', async () => {
  const path = await pathWith('path-bad-npm', { node: 'echo 20', npm: 'echo "npm ERR! no such host" >&2; exit 1' });
  for (const tool of ['sleep', 'du', 'rm']) await symlink(`/usr/bin/${tool}`, join(path, tool));

  const { code, stderr } = await run(await freshCheckout('bad-npm'), ['up'], { path });
  assert.equal(code, 1);
  assert.match(stderr, /^• npm packages: installing.*\nnpm ERR! no such host\nberth: npm ci failed in /s);
});

test('a completion request installs nothing and prints nothing', async () => {
  const path = await pathWith('path-complete', { node: 'echo 20', npm: 'echo "npm was called" >&2; exit 1' });
  assert.deepEqual(await run(await freshCheckout('complete'), ['__complete', 'bash', 'up'], { path }), {
    code: 0,
    stdout: '',
    stderr: '',
  });
});

test('the compile cache of client commands is kept in the cache folder of the user', async () => {
  const cache = join(folder, 'cache-of-ada');
  const environment = { XDG_CACHE_HOME: cache };
  const { code } = await run(join(CHECKOUT, 'berth'), ['help'], { path: '/usr/bin:/bin', environment });
  assert.equal(code, 0);
  assert.ok((await stat(join(cache, 'berth/node-compile'))).isDirectory());
});

test('the launcher finds its own folder through a link, from any working folder', async () => {
  const link = join(folder, 'linked');
  await symlink(join(CHECKOUT, 'berth'), link);
  const { code, stdout } = await run(link, ['help'], { path: '/usr/sbin:/usr/bin:/sbin:/bin' });
  assert.equal(code, 0);
  assert.match(stdout, /^Usage: berth /);
});

test('a user without sudo learns which rights are missing, but gets help', async () => {
  const path = await pathWith('path-no-sudo', AS_ADA);
  const refused = await run(join(CHECKOUT, 'berth'), ['up'], { path });
  assert.equal(refused.code, 1);
  assert.match(refused.stderr, /^berth: root's rights are needed/);
  for (const words of [
    ['whoami'],
    ['sandbox', 'ls'],
    ['ssh', 'sbx_abc'],
    ['tunnel', 'sbx_abc'],
    ['known-host', 'sbx_abc'],
  ]) {
    const client = await run(join(CHECKOUT, 'berth'), words, { path });
    assert.match(client.stderr, /^berth: not signed in/, `${words.join(' ')} needs no rights of root`);
  }
  const helped = await run(join(CHECKOUT, 'berth'), ['up', '--help'], { path });
  assert.equal(helped.code, 0, helped.stderr);
  assert.match(helped.stdout, /--data-dir/);
});

test('sudo runs the launcher with the user and variable names, and no variable values in the argv', async () => {
  const path = await pathWith('path-sudo', {
    ...AS_ADA,
    sudo: 'echo "argv: $*"; echo "caller: $BERTH_CALLER_UID $BERTH_CALLER_HOME"',
  });
  const environment = { BERTH_DATABASE_URL: 'postgresql://ada:secret@db/berth', BERTH_PORT: '4900' };
  const { code, stdout } = await run(join(CHECKOUT, 'berth'), ['up', '--data-dir', '/a b'], { path, environment });
  assert.equal(code, 0);
  const [argv = '', caller] = stdout.split('\n');
  assert.match(argv, new RegExp(`-- ${CHECKOUT}/berth up --data-dir /a b$`));
  const kept = /--preserve-env=(\S+)/.exec(argv)?.[1]?.split(',') ?? [];
  for (const name of [
    'BERTH_DATABASE_URL',
    'BERTH_PORT',
    'BERTH_CALLER_UID',
    'BERTH_CALLER_HOME',
    'NODE_EXTRA_CA_CERTS',
  ])
    assert.ok(kept.includes(name), name);

  assert.doesNotMatch(argv, /secret|4900/);
  assert.equal(caller, `caller: ${ADA} ${join(folder, 'ada')}`);
  assert.ok((await stat(join(folder, 'ada/.local/state'))).isDirectory(), 'made before root does');
});
