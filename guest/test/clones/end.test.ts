// Ends of a clone before it is done: by its callers, from outside, by its timeout, with the daemon.
// The next clone starts anew, or continues.
import assert from 'node:assert/strict';
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { after, afterEach, before, test, type TestContext } from 'node:test';
import { makeClone, makeSealedClone, clone, gitIn, processesWith } from './calls.ts';
import { makeIdentity, makeWake, runs, startDaemon, until, type TestDaemon } from '../daemon.ts';
import { basic, GitServer } from './git-server.ts';

const CREDENTIALS = { username: 'user', token: 'token' };

let git: GitServer;
before(async () => {
  git = await GitServer.start();
  git.add('acme/web', { 'README.md': 'read me\n', 'src/a.txt': 'a\n', 'docs/b.txt': 'b\n' });
  git.credentials = CREDENTIALS;
});
after(() => git.stop());
afterEach(() => {
  git.release();
  git.requests.length = 0;
});

const url = (): string => `${git.url}/acme/web.git`;
const leftovers = async (daemon: TestDaemon): Promise<string[]> =>
  (await readdir(daemon.codeFolder)).filter((name) => name.startsWith('.berth-clone-'));

async function isGone(daemon: TestDaemon): Promise<void> {
  await until('git is gone', async () => (await processesWith('git')).length === 0);
  assert.equal(existsSync(join(daemon.folder, 'clone-run')), false, 'the socket is still there');
  await until('nothing of it is left', async () => (await leftovers(daemon)).length === 0);
}

async function startHeld(t: TestContext, env: Record<string, string> = {}): Promise<TestDaemon> {
  const daemon = await startDaemon(t, env);
  git.hold();
  return daemon;
}
const isHeld = (): Promise<void> => until('the host holds it back', () => git.waiting === 1);

test('concurrent calls share one clone and its outcome', async (t) => {
  const daemon = await startHeld(t);
  const all = [1, 2, 3].map(() => clone(daemon, url(), { credentials: CREDENTIALS }));
  await isHeld();
  git.release();
  assert.deepEqual(
    await Promise.all(all),
    [1, 2, 3].map(() => ({ outcome: 'cloned' })),
  );
  assert.equal(git.requests.filter(({ authorization }) => authorization === undefined).length, 1);
});

test('a clone continues without its caller, for the next one', async (t) => {
  const daemon = await startHeld(t);
  const left = daemon.open(
    'POST',
    '/clone',
    JSON.stringify(await makeSealedClone(daemon, url(), { credentials: CREDENTIALS })),
  );
  left.answer.catch(() => undefined);
  await isHeld();
  left.request.destroy();
  const again = clone(daemon, url(), { credentials: CREDENTIALS });
  await until('it was asked again', async () => (await processesWith('git')).length > 0);
  git.release();
  assert.deepEqual(await again, { outcome: 'cloned' });
  assert.equal(git.requests.filter(({ authorization }) => authorization === undefined).length, 1);
});

test('a clone without callers is ended, with its secret', async (t) => {
  const daemon = await startHeld(t, { BERTH_GUEST_CLONE_ORPHAN_MS: '50' });
  const left = daemon.open(
    'POST',
    '/clone',
    JSON.stringify(await makeSealedClone(daemon, url(), { credentials: CREDENTIALS })),
  );
  left.answer.catch(() => undefined);
  await isHeld();
  left.request.destroy();
  await isGone(daemon);
  git.release();
  assert.deepEqual(await clone(daemon, url(), { credentials: CREDENTIALS }), { outcome: 'cloned' });
});

test('an external end aborts calls and removes git and secret before it returns; the next call restarts', async (t) => {
  const daemon = await startHeld(t);
  const broken = clone(daemon, url(), { credentials: CREDENTIALS });
  const rejected = assert.rejects(broken);
  await isHeld();
  assert.equal((await daemon.call('POST', '/clone/end')).status, 200);
  assert.deepEqual(await processesWith('git'), []);
  assert.equal(existsSync(join(daemon.folder, 'clone-run')), false);
  await rejected;
  git.release();
  assert.deepEqual(await clone(daemon, url(), { credentials: CREDENTIALS }), { outcome: 'cloned' });
  // No effect without a clone in flight.
  assert.equal((await daemon.call('POST', '/clone/end')).status, 200);
});

test('a wake ends the clone in flight when the VM fell asleep', async (t) => {
  const daemon = await startHeld(t);
  const { secret } = makeIdentity();
  await daemon.call('POST', '/identity', makeIdentity());
  const broken = daemon.call(
    'POST',
    '/clone',
    await makeSealedClone(daemon, url(), { credentials: CREDENTIALS }, secret),
    secret,
  );
  const rejected = assert.rejects(broken);
  await isHeld();
  assert.equal((await daemon.call('POST', '/wake', makeWake({ secret: 'b'.repeat(43) }), secret)).status, 200);
  await rejected;
  assert.deepEqual(await processesWith('git'), []);
});

test('cloning needs the secret of the VM and a complete identity', async (t) => {
  const daemon = await startDaemon(t);
  await daemon.call('POST', '/identity', makeIdentity());
  for (const path of ['/clone', '/clone/end'])
    assert.equal((await daemon.call('POST', path, makeClone(url()))).status, 401);
});

test('a clone over its time limit is reported as that, and git is gone', async (t) => {
  const daemon = await startHeld(t);
  const result = await clone(daemon, url(), { credentials: CREDENTIALS, timeoutSeconds: 1 });
  assert.deepEqual(result, { outcome: 'failed', code: 'timed_out', message: 'it took longer than 1 s' });
  await isGone(daemon);
});

for (const signal of ['SIGKILL', 'SIGTERM'] as const) {
  test(`git exits with a daemon that gets ${signal}; the next daemon starts over`, async (t) => {
    const daemon = await startHeld(t);
    const broken = clone(daemon, url(), { credentials: CREDENTIALS });
    const rejected = assert.rejects(broken);
    await isHeld();
    const processes = await processesWith('git');
    await daemon.stop(signal);
    await rejected;
    for (const { pid } of processes) await until(`${pid} has ended`, async () => !(await runs(pid)));
    git.release();
    await daemon.start();
    assert.deepEqual(await clone(daemon, url(), { credentials: CREDENTIALS }), { outcome: 'cloned' });
    assert.deepEqual(await leftovers(daemon), []);
    assert.equal(gitIn(daemon, 'status', '--porcelain'), '');
  });
}

/** Leaves the state of a daemon killed after `moved` entries. */
function interrupt(daemon: TestDaemon, moved: number): void {
  const folder = join(daemon.codeFolder, '.berth-clone-0123456789abcdef');
  mkdirSync(join(folder, 'work'), { recursive: true });
  for (const name of ['README.md', 'docs', 'src', '.git'].slice(moved))
    renameSync(join(daemon.codeFolder, name), join(folder, 'work', name));

  if (moved === 4) rmSync(folder, { recursive: true });
  writeFileSync(
    join(daemon.folder, 'clone.json'),
    JSON.stringify({ state: 'moving', folder: '.berth-clone-0123456789abcdef' }),
  );
}

for (const moved of [0, 1, 3, 4]) {
  test(`a move into place interrupted after ${moved} of 4 entries resumes without the host`, async (t) => {
    const daemon = await startDaemon(t);
    await clone(daemon, url(), { credentials: CREDENTIALS });
    await daemon.stop('SIGKILL');
    interrupt(daemon, moved);
    await daemon.start();
    const asked = git.requests.length;
    assert.deepEqual(await clone(daemon, url(), { credentials: CREDENTIALS }), { outcome: 'cloned' });
    assert.equal(git.requests.length, asked);
    assert.deepEqual((await readdir(daemon.codeFolder)).sort(), ['.git', 'README.md', 'docs', 'src']);
    assert.equal(gitIn(daemon, 'status', '--porcelain'), '');
    assert.equal(readFileSync(join(daemon.folder, 'clone.json'), 'utf8'), '{"state":"done"}');
  });
}

test('a repository that requires no credentials gets none', async (t) => {
  git.credentials = null;
  t.after(() => (git.credentials = CREDENTIALS));
  const daemon = await startDaemon(t);
  assert.deepEqual(await clone(daemon, url(), { credentials: CREDENTIALS }), { outcome: 'cloned' });
  assert.ok(git.requests.every(({ authorization }) => authorization !== basic(CREDENTIALS)));
});
