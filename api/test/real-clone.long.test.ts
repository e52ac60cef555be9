// Full clone of a repository: control plane, host daemon with its fake driver, real guest daemon,
// git, and a real git host with Basic authentication.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { after, afterEach, before, test } from 'node:test';
import type { Sandbox } from '@berth/contract/sandboxes/sandboxes.ts';
import { basic, GitServer } from '../../guest/test/clones/git-server.ts';
import { FakeInstallation } from './fake-installation.ts';
import { untilTrue } from '../../os/test/until.ts';

/** Distinctive text, as the tests search for it everywhere. */
const CREDENTIALS = { username: 'watched-for-user', token: 'WatchedForEverywhere0123456789' };
const SECRETS = [CREDENTIALS.username, CREDENTIALS.token, basic(CREDENTIALS).slice(6)];

let git: GitServer;
let berth: FakeInstallation;
let commits: { main: string; dev: string };
let projectId: string;
before(async () => {
  git = await GitServer.start();
  commits = git.add('acme/web', { 'README.md': 'read me\n', 'src/a.txt': 'a\n' });
  git.credentials = CREDENTIALS;
  berth = await FakeInstallation.start({ BERTH_GIT_BASE_URL: git.url });
  projectId = await berth.makeProject({
    defaultRepository: 'acme/web',
    repoCredentials: CREDENTIALS,
    useCase: 'external',
  });
});
after(async () => {
  git.release();
  await berth.stop();
  await git.stop();
});
afterEach(() => {
  git.release();
  git.requests.length = 0;
});

const isOver = ({ status }: Sandbox): boolean => status === 'ready';
const cloneOf = ({ status, clone }: Sandbox): unknown[] => [status, clone?.status, clone?.reason?.code];
const isHeld = (count = 1): Promise<void> =>
  untilTrue('the git host holds the clone back', () => git.waiting === count);

/** Sandbox whose clone has signed in and is held by the git host. */
async function heldSandbox(): Promise<Sandbox> {
  git.hold();
  const { id } = await berth.create({ projectId });
  await isHeld();
  return await berth.until(id, ({ clone }) => clone?.status === 'cloning');
}

async function isCloned(id: string): Promise<void> {
  const sandbox = await berth.until(id, isOver);
  assert.deepEqual(cloneOf(sandbox), ['ready', 'cloned', undefined], JSON.stringify(sandbox.clone));
  const { stdout } = await berth.exec(id, 'git rev-parse HEAD && git status --porcelain && ls -A && cat README.md');
  assert.equal(stdout, `${commits.main}\n.git\nREADME.md\nsrc\nread me\n`);
}

/** Lists processes of this host whose arguments or environment contain a secret. */
function processesShowingSecrets(): string[] {
  return readdirSync('/proc').filter((name) => {
    if (!/^\d+$/.test(name)) return false;
    return ['cmdline', 'environ'].some((file) => {
      try {
        const text = readFileSync(`/proc/${name}/${file}`, 'utf8');
        return SECRETS.some((secret) => text.includes(secret));
      } catch {
        // The process exited or is not readable.
        return false;
      }
    });
  });
}

/** Lists files of the host daemon and its VMs that contain a secret. */
function filesShowingSecrets(): string[] {
  try {
    const patterns = SECRETS.flatMap((secret) => ['-e', secret]);
    return execFileSync('grep', ['-rlaF', ...patterns, berth.folder], { encoding: 'utf8' })
      .trim()
      .split('\n');
  } catch (error) {
    if ((error as { status?: number }).status === 1) return [];
    throw error;
  }
}

test('a sandbox runs commands during its clone, is ready after it, and leaks no credentials', async () => {
  const { id, clone } = await heldSandbox();
  assert.deepEqual(clone, { status: 'cloning', reason: null });
  assert.equal((await berth.exec(id, 'echo works')).stdout, 'works\n');
  assert.deepEqual(processesShowingSecrets(), []);
  assert.deepEqual(filesShowingSecrets(), []);
  const inside = await berth.exec(
    id,
    'cat /proc/[0-9]*/cmdline /proc/[0-9]*/environ ~/.gitconfig 2>/dev/null | tr "\\0" "\\n"; env',
  );
  for (const secret of SECRETS) assert.ok(!inside.stdout.includes(secret));
  assert.match(inside.stdout, /git clone|clone/);

  git.release();
  await isCloned(id);
  assert.deepEqual(processesShowingSecrets(), []);
  assert.deepEqual(filesShowingSecrets(), []);
  for (const secret of SECRETS) assert.ok(!berth.log.includes(secret), 'the log holds the credentials');
  const config = (await berth.exec(id, 'git config --list --local && ls -A ~ /run/berth-clone 2>&1; ls -A /tmp'))
    .stdout;
  assert.match(config, new RegExp(`remote.origin.url=${git.url}/acme/web.git`));
  assert.doesNotMatch(config, /credential/);
  assert.deepEqual(await berth.kindsOf(id), [
    'sandbox_created',
    'sandbox_running',
    'sandbox_clone_started',
    'sandbox_exec',
    'sandbox_exec',
    'sandbox_clone_finished',
    'sandbox_ready',
    'sandbox_exec',
    'sandbox_exec',
  ]);
});

test('the requested branch is checked out', async () => {
  const { id } = await berth.create({ projectId, branch: 'dev' });
  assert.deepEqual(cloneOf(await berth.until(id, isOver)), ['ready', 'cloned', undefined]);
  assert.equal(
    (await berth.exec(id, 'git rev-parse HEAD && git branch --show-current')).stdout,
    `${commits.dev}\ndev\n`,
  );
});

for (const [title, fields, code, message] of [
  [
    'an unknown repository',
    { repository: 'acme/none' },
    'repository_not_found',
    /^the repository does not exist: fatal: repository '.*' not found$/,
  ],
  [
    'an unknown branch',
    { branch: 'nope' },
    'branch_not_found',
    /^the repository has no such branch: fatal: Remote branch nope not found in upstream origin$/,
  ],
] as const) {
  test(`${title} leaves the sandbox ready with a reason, and everything else works`, async () => {
    const { id } = await berth.create({ projectId, ...fields });
    const sandbox = await berth.until(id, isOver);
    assert.deepEqual(cloneOf(sandbox), ['ready', 'failed', code]);
    assert.match(sandbox.clone?.reason?.message ?? '', message);
    assert.equal((await berth.exec(id, 'ls -A; git init --quiet . && echo usable')).stdout, 'usable\n');
    assert.ok((await berth.kindsOf(id)).includes('sandbox_clone_failed'));
  });
}

test('wrong or missing credentials leave the sandbox ready with a reason', async () => {
  for (const repoCredentials of [{ ...CREDENTIALS, token: 'wrong-token' }, null]) {
    const project = await berth.makeProject({ defaultRepository: 'acme/web', repoCredentials });
    const { id } = await berth.create({ projectId: project });
    const sandbox = await berth.until(id, isOver);
    assert.deepEqual(cloneOf(sandbox), ['ready', 'failed', 'access_denied']);
    assert.doesNotMatch(JSON.stringify(sandbox), /wrong-token/);
  }
});

for (const part of ['api', 'host'] as const) {
  test(`killing the ${part} during a clone does not prevent the clone`, async () => {
    const { id } = await heldSandbox();
    await berth.end(part);
    await berth.run(part);
    git.release();
    await isCloned(id);
    assert.equal((await berth.kindsOf(id)).filter((kind) => kind === 'sandbox_clone_finished').length, 1);
  });
}

test('killing API and host during many clones clones each once and leaves none running', async () => {
  const ids: string[] = [];
  for (let round = 0; round < 6; round += 1) {
    const { id } = await berth.create({ projectId });
    ids.push(id);
    const part = round % 2 === 0 ? 'api' : 'host';
    const seen = git.requests.length;
    // A different moment in each round: before git, at its first request, later.
    await untilTrue('the clone has come so far', () => git.requests.length - seen >= round % 4);
    await berth.end(part);
    await berth.run(part);
  }
  for (const id of ids) await isCloned(id);
});

test('a sleep interrupts a clone, captures no git process, and the wake clones', async () => {
  const { id } = await heldSandbox();
  await berth.call('POST', `/v1/sandboxes/${id}/sleep`);
  const asleep = await berth.until(id, ({ status }) => status === 'stopped');
  assert.deepEqual(asleep.clone, { status: 'pending', reason: null });
  await untilTrue('git is gone', () => git.waiting === 0);
  git.release();
  await berth.call('POST', `/v1/sandboxes/${id}/wake`);
  await isCloned(id);
});

test('a destroy interrupts a clone and leaves nothing', async () => {
  const { id } = await heldSandbox();
  await berth.call('POST', `/v1/sandboxes/${id}/destroy`);
  const deleted = await berth.until(id, ({ status }) => status === 'deleted');
  assert.deepEqual(deleted.clone, { status: 'pending', reason: null });
  await untilTrue('git is gone', () => git.waiting === 0);
});

test('an ephemeral sandbox can expire during its clone', async () => {
  git.hold();
  const { id, expiresAt } = await berth.create({ projectId, mode: 'ephemeral', ttlSeconds: 4 });
  await isHeld();
  const deleted = await berth.until(id, ({ status }) => status === 'deleted');
  assert.ok(Date.parse(deleted.deletedAt ?? '') >= Date.parse(expiresAt ?? ''));
  await untilTrue('git is gone', () => git.waiting === 0);
});
