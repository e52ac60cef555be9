// Clones a repository in a real guest, from a git host on the internet of a test network. The clone
// exists when the sandbox is ready, stays whole through kills, and leaves its credentials in no
// readable file, argument or environment.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { readdir, readFile } from 'node:fs/promises';
import { after, afterEach, before, test } from 'node:test';
import { promisify } from 'node:util';
import { listActivity } from '@berth/contract/activity/feed.ts';
import { sandboxAnswer, type Sandbox } from '@berth/contract/sandboxes/sandboxes.ts';
import { startGitServerIn, type NamespaceGitServer } from '../../guest/test/clones/git-server-process.ts';
import { enterPrivateHost } from '../../host/test/vm/private-host.ts';
import { startUplink, type Uplink } from '../../host/test/network/uplink.ts';
import {
  call,
  createSandbox,
  destroySandbox,
  exec,
  getSandbox,
  listSandboxes,
  waitForStatus,
} from '../world/client.ts';
import { leftoversOf, processesOfVm } from '../world/leftovers.ts';
import { Parts } from '../world/parts.ts';
import { sampleOf } from '../../os/test/long-run.ts';
import { until } from '../../os/test/until.ts';

enterPrivateHost();

const CREDENTIALS = { username: 'watched-for-user', token: 'WatchedForEverywhere0123456789' };
const SECRETS = [
  CREDENTIALS.username,
  CREDENTIALS.token,
  Buffer.from(`${CREDENTIALS.username}:${CREDENTIALS.token}`).toString('base64'),
];
const PORT = 3_000;

let uplink: Uplink;
let git: NamespaceGitServer;
let parts: Parts;
let log = '';
let commits: { main: string; dev: string };

before(async () => {
  uplink = await startUplink();
  const address = uplink.internet[0]?.address ?? '';
  git = await startGitServerIn(uplink.namespacePath, address, PORT);
  ({ commits } = await git.order({ do: 'credentials', credentials: CREDENTIALS }));
  parts = await Parts.start({
    environment: {
      BERTH_GIT_BASE_URL: `http://${address}:${PORT}`,
      BERTH_POOL_MIN: '1',
      BERTH_POOL_MAX: '1',
      BERTH_LOG_LEVEL: 'debug',
    },
    onLog: (_name, chunk) => (log += chunk.toString()),
  });
  const made = await call(parts.caller, 'PATCH', `/v1/orgs/${parts.caller.orgId}/projects/${parts.caller.projectId}`, {
    defaultRepository: 'acme/web',
    repoCredentials: CREDENTIALS,
  });
  assert.equal(made.status, 200);
});

afterEach(async () => {
  await git.order({ do: 'release' });
  await parts.runAll();
  for (const { id } of await listSandboxes(parts.caller)) await destroySandbox(parts.caller, id);
});

after(async () => {
  try {
    await parts.stop();
    assert.deepEqual(await leftoversOf(parts.dataFolder), []);
    await parts.remove();
  } finally {
    // A test file with a running child process does not exit.
    await git?.stop();
    await uplink?.stop();
  }
});

/** A sandbox whose clone has signed in and is held back by the git host. */
async function heldSandbox(): Promise<Sandbox> {
  await git.order({ do: 'hold' });
  const { id } = await createSandbox(parts.caller);
  await isHeld();
  return await getSandbox(parts.caller, id);
}

const isHeld = (): Promise<unknown> =>
  until('the git host holds the clone back', async () => ((await git.order({ do: 'look' })).waiting > 0 ? true : null));

async function isCloned(id: string): Promise<void> {
  const sandbox = await waitForStatus(parts.caller, id, ['ready']);
  assert.deepEqual(sandbox.clone, { status: 'cloned', reason: null }, parts.log.slice(-3_000));
  const { stdout, stderr } = await exec(
    parts.caller,
    id,
    'git rev-parse HEAD && git status --porcelain && ls -A && git fsck --strict && stat -c %U . .git README.md',
  );
  assert.equal(stdout, `${commits.main}\n.git\nREADME.md\nsrc\nberth\nberth\nberth\n`, stderr);
}

/** Secrets found by the guest's root, in processes and then in files. */
async function findInGuest(id: string): Promise<string> {
  const patterns = SECRETS.map((secret) => `${secret.slice(0, 3)}[${secret[3]}]${secret.slice(4)}`);
  const search = patterns.map((pattern) => `-e '${pattern}'`).join(' ');
  const { stdout } = await exec(
    parts.caller,
    id,
    `sudo grep -la ${search} /proc/[0-9]*/cmdline /proc/[0-9]*/environ 2>/dev/null; ` +
      `sudo grep -rla --devices=skip ${search} /code /home /root /tmp /run /etc ` +
      '/var/lib/berth /var/log /opt/berth 2>/dev/null; echo over',
    300,
  );
  return stdout;
}

/** Processes whose memory holds a secret. The search pattern does not match itself. */
async function findInMemory(id: string, texts = SECRETS): Promise<string> {
  const pattern = texts.map((text) => `${text.slice(0, 3)}[${text[3]}]${text.slice(4)}`).join('|');
  const look =
    'for my $pid (grep { /^\\d+$/ && $_ != $$ } map { substr($_, 6) } glob("/proc/[0-9]*")) { ' +
    'open(my $maps, "<", "/proc/$pid/maps") or next; ' +
    'open(my $memory, "<:raw", "/proc/$pid/mem") or next; ' +
    'my $name = readlink("/proc/$pid/exe"); ' +
    'while (<$maps>) { next unless /^([0-9a-f]+)-([0-9a-f]+) rw/; my ($from, $to) = (hex $1, hex $2); ' +
    'sysseek($memory, $from, 0); my $bytes; next unless sysread($memory, $bytes, $to - $from); ' +
    `print "$name\\n" if $bytes =~ /${pattern}/; } } print "over";`;
  const { stdout, stderr } = await exec(parts.caller, id, `sudo perl -e '${look}'`, 300);
  assert.equal(stderr, '');
  return stdout;
}

async function findOnHost(wanted = SECRETS): Promise<string[]> {
  const found: string[] = [];
  for (const name of await readdir('/proc')) {
    if (!/^\d+$/.test(name)) continue;
    for (const file of ['cmdline', 'environ']) {
      const text = await readFile(`/proc/${name}/${file}`, 'utf8').catch(() => '');
      if (wanted.some((secret) => text.includes(secret))) found.push(`/proc/${name}/${file}`);
    }
  }
  // Records, logs and sockets; the guests' disks are searched from inside.
  const patterns = wanted.flatMap((secret) => ['-e', secret]);
  const { stdout } = await promisify(execFile)('grep', [
    '-rlaF',
    '--exclude=*.qcow2',
    ...patterns,
    parts.dataFolder,
  ]).catch((error: { code?: number; stdout?: string }) => ({
    stdout: error.code === 1 ? '' : `grep failed: ${String(error.stdout)}`,
  }));
  return [...found, ...stdout.split('\n').filter((line) => line !== '')];
}

test('a sandbox runs during its clone and is ready with all of it; its credentials are nowhere', async () => {
  const { id, status, clone } = await heldSandbox();
  assert.deepEqual([status, clone], ['running', { status: 'cloning', reason: null }]);
  assert.equal(await findInGuest(id), 'over\n');
  assert.deepEqual(await findOnHost(), []);
  const seen = await exec(parts.caller, id, 'pgrep -u berth -a git; sudo ls -A /run/berth-clone');
  assert.match(seen.stdout, /git clone .*\n[^]*credentials\n/);

  await git.order({ do: 'release' });
  await isCloned(id);
  assert.equal(await findInGuest(id), 'over\n');
  assert.equal(await findInMemory(id), 'over');
  assert.notEqual(await findInMemory(id, ['guestd.mjs']), 'over', 'the look finds nothing');
  assert.deepEqual(await findOnHost(), []);
  for (const secret of SECRETS) assert.ok(!log.includes(secret), 'a log holds the credentials');
  const left = await exec(
    parts.caller,
    id,
    'sudo ls /run/berth-clone; sudo cat /var/lib/berth/clone.json; GIT_TERMINAL_PROMPT=0 git fetch',
  );
  assert.equal(left.stdout, '{"state":"done"}');
  assert.notEqual(left.exitCode, 0, 'the sandbox has kept the credentials');
});

test('the requested branch is checked out, and no repository means none', async () => {
  const dev = await createSandbox(parts.caller, { branch: 'dev' });
  const none = await createSandbox(parts.caller, { repository: null });
  const cloned = await waitForStatus(parts.caller, dev.id, ['ready']);
  assert.deepEqual([cloned.repository, cloned.branch, cloned.clone?.status], ['acme/web', 'dev', 'cloned']);
  const { stdout } = await exec(parts.caller, dev.id, 'git rev-parse HEAD && git branch --show-current && cat dev.txt');
  assert.equal(stdout, `${commits.dev}\ndev\non dev\n`);
  const empty = await waitForStatus(parts.caller, none.id, ['ready']);
  assert.deepEqual([empty.repository, empty.branch, empty.clone], [null, null, null]);
  assert.equal((await exec(parts.caller, none.id, 'ls -A')).stdout, '');
});

test('an unknown branch or repository or wrong credentials leave a working sandbox that reports it', async () => {
  const unknown = await createSandbox(parts.caller, { branch: 'nope' });
  const ready = await waitForStatus(parts.caller, unknown.id, ['ready']);
  assert.equal(ready.clone?.reason?.code, 'branch_not_found', JSON.stringify(ready.clone));
  const nowhere = await createSandbox(parts.caller, { repository: 'acme/none' });
  const missing = await waitForStatus(parts.caller, nowhere.id, ['ready']);
  assert.equal(missing.clone?.reason?.code, 'repository_not_found', JSON.stringify(missing.clone));
  await git.order({ do: 'credentials', credentials: { ...CREDENTIALS, token: 'another' } });
  const wrong = await createSandbox(parts.caller);
  const refused = await waitForStatus(parts.caller, wrong.id, ['ready']);
  await git.order({ do: 'credentials', credentials: CREDENTIALS });
  assert.equal(refused.clone?.reason?.code, 'access_denied', JSON.stringify(refused.clone));
  for (const id of [unknown.id, nowhere.id, wrong.id])
    assert.equal((await exec(parts.caller, id, 'ls -A; echo works')).stdout, 'works\n');
});

for (const [title, strike] of sampleOf(
  [
    [
      'the guest daemon',
      async (id: string) => {
        // Kills the command that runs it as well.
        await exec(parts.caller, id, 'sudo pkill -9 -f guestd.mjs').catch(() => undefined);
      },
    ],
    ['the host daemon', async () => await parts.kill('host').then(() => parts.run('host'))],
    ['the API', async () => await parts.kill('api').then(() => parts.run('api'))],
    ['the database', async () => await parts.kill('database').then(() => parts.run('database'))],
  ] as const,
  4,
)) {
  test(`when ${title} is killed during a clone, the repository is still cloned`, async () => {
    const { id } = await heldSandbox();
    await strike(id);
    await git.order({ do: 'release' });
    await isCloned(id);
  });
}

// The API's own crash test kills at each point.
for (const point of sampleOf([
  'clone:answered',
  'clone:looked-up',
  'clone:decided',
  'clone:written',
  'clone:removed',
])) {
  test(
    `when the API is killed at ${point}, the repository is cloned once, and reported once`,
    { timeout: 600_000 },
    async () => {
      await parts.arm('api', point);
      const before = new Set((await listSandboxes(parts.caller)).map(({ id }) => id));
      // Killed during the response, or soon after.
      await createSandbox(parts.caller).catch(() => undefined);
      assert.match((await parts.ended('api')) ?? 'SIGKILL', /SIGKILL/);
      await parts.arm('api', null);
      await parts.run('api');
      const made = (await listSandboxes(parts.caller)).filter(({ id }) => !before.has(id));
      assert.equal(made.length, 1);
      const [{ id } = { id: '' }] = made;
      await isCloned(id);
      const { body } = await call(
        parts.caller,
        'GET',
        `/v1/orgs/${parts.caller.orgId}/activity?sandboxId=${id}&limit=100`,
      );
      const kinds = listActivity.response.body.parse(body).activity.map(({ kind }) => kind);
      assert.equal(kinds.filter((kind) => kind === 'sandbox_clone_finished').length, 1, kinds.join());
    },
  );
}

test('a sleep during a clone ends git first; the wake resumes the VM and clones', async () => {
  const { id } = await heldSandbox();
  await exec(parts.caller, id, 'echo kept > /dev/shm/kept');
  const answer = await call(parts.caller, 'POST', `/v1/sandboxes/${id}/sleep`);
  assert.equal(answer.status, 200);
  const asleep = await waitForStatus(parts.caller, id, ['stopped']);
  assert.deepEqual(asleep.clone, { status: 'pending', reason: null });
  await until('git has left', async () => ((await git.order({ do: 'look' })).waiting === 0 ? true : null));
  const woken = sandboxAnswer.parse((await call(parts.caller, 'POST', `/v1/sandboxes/${id}/wake`)).body).sandbox;
  assert.ok(['waking', 'running'].includes(woken.status), woken.status);
  await isHeld();
  assert.equal((await exec(parts.caller, id, 'cat /dev/shm/kept')).stdout, 'kept\n');
  await git.order({ do: 'release' });
  await isCloned(id);
});

test('a VM killed during a clone wakes from its disk, and clones', async () => {
  const { id } = await heldSandbox();
  const [pid] = await processesOfVm(id);
  assert.ok(pid !== undefined);
  process.kill(pid, 'SIGKILL');
  await waitForStatus(parts.caller, id, ['failed']);
  await git.order({ do: 'release' });
  await call(parts.caller, 'POST', `/v1/sandboxes/${id}/wake`);
  await waitForStatus(parts.caller, id, ['running', 'ready']);
  await isCloned(id);
});
