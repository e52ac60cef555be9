// `berth cp` of a large file into a sandbox: broken connections, killed runs, changed files, links.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { openSync, utimesSync, writeSync } from 'node:fs';
import {
  appendFile,
  chmod,
  link,
  lstat,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  readlink,
  rename,
  rm,
  stat,
  symlink,
  truncate,
  utimes,
  writeFile,
} from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, afterEach, before, beforeEach, test } from 'node:test';
import { promisify } from 'node:util';
import type { TestDaemon } from '../../../guest/test/daemon.ts';
import { serveRealGuest } from '../../../api/test/world/guests/real-guest.ts';
import { ExecRefusal } from '../../../api/test/world/guests/exec-refusal.ts';
import type { ExecFront } from '../../../api/test/world/guests/exec-front.ts';
import { RESUMED_BYTES } from '../../src/files/resumed-upload.ts';
import { startBerth, type Ended } from '../world/berth.ts';
import { CuttingProxy } from '../world/cutting-proxy.ts';
import { Service } from '../world/service.ts';

const SIZE = 24_000_000;
const CONTENT = randomBytes(SIZE);
const MODIFIED = new Date('2020-02-03T04:05:06Z');

const endings: (() => unknown)[] = [];
let service: Service;
let proxy: CuttingProxy;
let id: string;
let here: string;
let there: string;
let code: string;
let daemon: TestDaemon;
let real: Pick<ExecFront, 'files' | 'stream'>;
/** Uploads that reached the host, as `OFFSET+BYTES`. */
let uploads: string[];
before(async () => {
  service = await Service.start({ durable: false });
  daemon = await serveRealGuest({ after: (end) => void endings.push(end as () => unknown) }, service.api.front);
  code = daemon.codeFolder;
  const { files, stream } = service.api.front;
  real = { files, stream };
  ({ id } = await service.api.makeSandbox('ready'));
});
after(async () => {
  for (const end of endings) await end();
  await service.close();
});
beforeEach(async () => {
  here = await mkdtemp(join(tmpdir(), 'berth-upload-'));
  there = await mkdtemp(join(code, 'there-'));
  await chmod(there, 0o777);
  proxy = await CuttingProxy.start(service.api.url);
  uploads = [];
  Object.assign(service.api.front, real);
  service.api.front.stream = (vmId, target) => {
    const query = new URLSearchParams(target.split('?')[1]);
    if (target.startsWith('file/stream')) uploads.push(`${query.get('offset')}+${query.get('bytes')}`);
    return real.stream(vmId, target);
  };
  await writeFile(join(here, 'f'), CONTENT, { mode: 0o640 });
  await utimes(join(here, 'f'), MODIFIED, MODIFIED);
});
afterEach(async () => {
  await proxy.close();
  await rm(here, { recursive: true, force: true });
  await rm(there, { recursive: true, force: true });
});

const environment = (): Record<string, string | undefined> => service.environment({ BERTH_URL: proxy.url });
const cp = async (to: string, from = join(here, 'f')): Promise<Ended> =>
  await service.run(['cp', from, `${id}:${to}`], { env: environment() });

async function copied(path: string): Promise<void> {
  assert.ok((await readFile(path)).equals(CONTENT), path);
  const { mode, mtimeMs } = await stat(path);
  assert.deepEqual([mode & 0o7777, mtimeMs], [0o640, MODIFIED.getTime()]);
}

/** Bytes of the parts in the folder. */
async function parts(): Promise<number[]> {
  const names = (await readdir(there)).filter((name) => name.startsWith('.berth-cp-'));
  return await Promise.all(names.map(async (name) => (await stat(join(there, name))).size));
}

test('a large file arrives whole, with mode and time, and nothing else is left', async () => {
  assert.deepEqual(await cp(`${there}/new name\n`), { code: 0, stdout: '', stderr: '' });
  await copied(`${there}/new name\n`);
  assert.deepEqual(await cp(there), { code: 0, stdout: '', stderr: '' }, 'into a folder');
  await copied(join(there, 'f'));
  assert.deepEqual((await readdir(there)).toSorted(), ['f', 'new name\n']);
  assert.deepEqual(uploads.slice(0, 3), ['0+0', `0+${RESUMED_BYTES}`, `${RESUMED_BYTES}+${RESUMED_BYTES}`]);
});

test('a smaller file goes at once, as an archive', async () => {
  await writeFile(join(here, 'small'), CONTENT.subarray(0, RESUMED_BYTES - 1));
  assert.deepEqual(await cp(there, join(here, 'small')), { code: 0, stdout: '', stderr: '' });
  assert.equal((await stat(join(there, 'small'))).size, RESUMED_BYTES - 1);
  assert.deepEqual(uploads, []);
});

test('a cut connection is continued in the same run', async () => {
  proxy.cuts = [3_000_000, 14_000_000, 14_000_001];
  const { code: exit, stderr } = await cp(there);
  assert.deepEqual([exit, proxy.cuts], [0, []], stderr);
  assert.match(stderr, /^(berth: \S+: continuing at [\d.]+ MiB of 23 MiB\n)+berth: \S+: comparing the SHA-256 .+\n$/);
  await copied(join(there, 'f'));
  assert.deepEqual(await readdir(there), ['f']);
  assert.ok(proxy.passed < SIZE + 10_000_000, `${proxy.passed} bytes were sent`);
});

test('a guest daemon that is killed in the middle does not end the upload', async () => {
  let restarted: Promise<void> | undefined;
  proxy.onPassed = (bytes) => {
    if (bytes > 12_000_000) restarted ??= daemon.stop('SIGKILL').then(() => daemon.start());
  };
  const { code: exit, stderr } = await cp(there);
  await restarted;
  assert.deepEqual([exit, /: continuing at .*\n.*: comparing /.test(stderr)], [0, true], stderr);
  await copied(join(there, 'f'));
  assert.deepEqual(await readdir(there), ['f']);
});

for (const signal of ['SIGKILL', 'SIGINT'] as const) {
  test(`the next run continues after ${signal}; until then the old file is whole`, async () => {
    await writeFile(join(there, 'f'), 'old');
    const { child, ended } = startBerth(['cp', join(here, 'f'), `${id}:${there}`], { env: environment() });
    proxy.onPassed = (bytes) => {
      // Once: a program that exits handles signals no more.
      if (bytes > 14_000_000 && !child.killed) child.kill(signal);
    };
    assert.equal((await ended).code, signal === 'SIGKILL' ? null : 130);
    proxy.onPassed = () => undefined;
    assert.equal(await readFile(join(there, 'f'), 'utf8'), 'old');
    const [arrived = 0, ...others] = await parts();
    assert.ok(arrived >= RESUMED_BYTES && others.length === 0, String(arrived));

    const before = proxy.passed;
    const { code: exit, stderr } = await cp(there);
    assert.equal(exit, 0, stderr);
    assert.match(stderr, /^berth: sbx_\w+:\S+: continuing at [\d.]+ MiB of 23 MiB\nberth: .* comparing .*\n$/);
    await copied(join(there, 'f'));
    assert.deepEqual(await readdir(there), ['f']);
    assert.ok(proxy.passed - before < SIZE - RESUMED_BYTES + 1_000_000);
  });
}

test('a local file that changes during the upload is exit code 1, and nothing is left', async () => {
  const file = join(here, 'f');
  for (const change of [
    async () => await appendFile(file, 'more'),
    async () => await utimes(file, new Date(), new Date()),
    () => {
      // Size and time of change stay.
      writeSync(openSync(file, 'r+'), 'changed');
      utimesSync(file, MODIFIED, MODIFIED);
    },
    async () => {
      await writeFile(join(here, 'other'), CONTENT);
      await rename(join(here, 'other'), file);
    },
    async () => await rm(file),
  ]) {
    await writeFile(file, CONTENT);
    await utimes(file, MODIFIED, MODIFIED);
    let isChanged = false;
    let changed: unknown;
    const start = proxy.passed;
    proxy.onPassed = (bytes) => {
      if (isChanged || bytes - start < 4_000_000) return;
      isChanged = true;
      changed = change();
    };
    const { code: exit, stderr } = await cp(join(there, 'target'));
    await changed;
    assert.equal(exit, 1, stderr);
    assert.match(stderr, /f changed while it was copied: nothing was written to the target/);
    assert.deepEqual(await readdir(there), [], String(change));
  }
});

test('a part that a program in the sandbox has changed never becomes the target', async () => {
  await writeFile(join(there, 'f'), 'old');
  for (const change of [
    async (part: string) => await appendFile(part, 'junk'),
    async (part: string) => await truncate(part, 1_000_000),
    async (part: string) => await writeFile(part, 'junk', { flag: 'r+' }),
  ]) {
    const { child, ended } = startBerth(['cp', join(here, 'f'), `${id}:${there}`], { env: environment() });
    const start = proxy.passed;
    proxy.onPassed = (bytes) => void (bytes - start > 14_000_000 && child.kill('SIGKILL'));
    await ended;
    proxy.onPassed = () => undefined;
    const part = (await readdir(there)).find((name) => name.startsWith('.berth-cp-')) ?? '';
    // The request of the killed run may still write.
    await promisify(execFile)('flock', [join(there, part), 'true']);
    await change(join(there, part));
    const { code: exit, stderr } = await cp(there);
    if (String(change).includes('truncate')) {
      assert.equal(exit, 0, stderr);
      await copied(join(there, 'f'));
      await writeFile(join(there, 'f'), 'old');
    } else {
      assert.deepEqual([exit, /has other bytes than the file/.test(stderr)], [1, true], stderr);
    }
    assert.equal(await readFile(join(there, 'f'), 'utf8'), 'old');
    assert.deepEqual(await readdir(there), ['f'], 'the next run begins anew');
  }
});

test('a link as the target stays, and its own target is replaced', async () => {
  await mkdir(join(there, 'deep'));
  await chmod(join(there, 'deep'), 0o777);
  await writeFile(join(there, 'deep/real'), 'old');
  await symlink('deep/real', join(there, 'link'));
  assert.equal((await cp(join(there, 'link'))).code, 0);
  await copied(join(there, 'deep/real'));
  assert.equal(await readlink(join(there, 'link')), 'deep/real');
  await symlink('nowhere', join(there, 'dangling'));
  const { code: exit, stderr } = await cp(join(there, 'dangling'));
  assert.deepEqual([exit, /the target is a dangling symlink/.test(stderr)], [1, true], stderr);
  await symlink('deep', join(there, 'folder'));
  assert.equal((await cp(join(there, 'folder'))).code, 0);
  await copied(join(there, 'deep/f'));
});

test('a link planted in place of the part is refused, and its target untouched', async () => {
  const { child, ended } = startBerth(['cp', join(here, 'f'), `${id}:${there}`], { env: environment() });
  proxy.onPassed = (bytes) => void (bytes > 10_000_000 && child.kill('SIGKILL'));
  await ended;
  proxy.onPassed = () => undefined;
  const [part = ''] = await readdir(there);
  await rm(join(there, part));
  await writeFile(join(there, 'kept'), '');
  await chmod(join(there, 'kept'), 0o666);
  await symlink('kept', join(there, part));
  const { code: exit, stderr } = await cp(there);
  assert.deepEqual([exit, /not the path of a file/.test(stderr)], [1, true], stderr);
  assert.equal((await stat(join(there, 'kept'))).size, 0);
  assert.ok((await lstat(join(there, part))).isSymbolicLink());
});

test('wrong targets are refused before bytes are sent', async () => {
  await mkdir(join(there, 'folder/f'), { recursive: true });
  for (const [to, why] of [
    [join(there, 'none/f'), /the parent folder does not exist/],
    [join(there, 'none/'), /no such folder/],
    [join(there, 'folder'), /the target is a folder/],
    ['/dev/null', /the target is not a regular file/],
  ] as const) {
    const { code: exit, stderr } = await cp(to);
    assert.equal(exit, 1);
    assert.match(stderr, why);
  }
  assert.deepEqual(uploads, []);
});

test('a sandbox of an earlier release, and a name that is not UTF-8, get an archive', async () => {
  service.api.front.stream = (vmId, target) => {
    if (target.includes('offset=')) throw new ExecRefusal('file_call_unsupported', 'no such option');
    return real.stream(vmId, target);
  };
  assert.deepEqual(await cp(there), { code: 0, stdout: '', stderr: '' });
  await copied(join(there, 'f'));

  service.api.front.stream = real.stream;
  const odd = Buffer.concat([Buffer.from(`${there}/odd `), Buffer.from([0xff])]);
  await writeFile(odd, 'old');
  await chmod(odd, 0o666);
  await symlink(odd, join(there, 'to-odd'));
  await link(join(here, 'f'), join(here, 'hard'));
  assert.deepEqual(await cp(join(there, 'to-odd'), join(here, 'hard')), { code: 0, stdout: '', stderr: '' });
  assert.equal((await stat(odd)).size, SIZE);
});
