import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { lstat, mkdir, mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { isSame, readProcess } from '@berth/os/process-identity.ts';
import {
  endRecordedServices,
  instancePaths,
  isSupervised,
  lockInstance,
  prepareInstance,
  readInstanceRecord,
  writeInstanceRecord,
} from '../../src/supervisor/instance.ts';

const USER = { name: 'nobody', uid: 65_534, gid: 65_534 };

let root: string;
before(async () => {
  root = await mkdtemp(join(tmpdir(), 'berth-instance-'));
});
after(() => rm(root, { recursive: true, force: true }));

test('secret folders are closed; the shared token is made once, for root and the services', async () => {
  const paths = instancePaths(join(root, 'secrets'));
  await Promise.all([prepareInstance(paths, USER), prepareInstance(paths, USER)]);
  const token = await readFile(paths.hostToken, 'utf8');
  assert.match(token, /^[\w-]{43}\n$/);
  await prepareInstance(paths, USER);
  assert.equal(await readFile(paths.hostToken, 'utf8'), token);
  const file = await stat(paths.hostToken);
  assert.deepEqual([file.mode & 0o777, file.uid, file.gid], [0o640, 0, USER.gid]);
  for (const folder of [paths.secrets, paths.log, paths.postgres])
    assert.equal((await stat(folder)).mode & 0o777, 0o700, folder);
});

test('secrets of an earlier version are moved once, also by concurrent starts', async () => {
  const paths = instancePaths(join(root, 'earlier'));
  await mkdir(paths.secrets, { recursive: true });
  const old = join(paths.secrets, 'host-token');
  await writeFile(old, 'kept\n', { mode: 0o640 });
  await Promise.all([prepareInstance(paths, USER), prepareInstance(paths, USER)]);
  assert.equal(await readFile(paths.hostToken, 'utf8'), 'kept\n');
  assert.equal(await readFile(old, 'utf8'), 'kept\n');
  assert.ok((await lstat(old)).isSymbolicLink());
  await rm(old);
  await writeFile(old, 'another\n');
  await assert.rejects(prepareInstance(paths, USER), /host-token and .*api.host-token differ: keep the right one/);
});

test('a data folder has one supervisor at a time, and none before its first start', async () => {
  const paths = instancePaths(join(root, 'lock'));
  assert.equal(await isSupervised(paths), false);
  const lock = await lockInstance(paths);
  assert.ok(lock !== null);
  assert.equal(await isSupervised(paths), true);
  assert.equal(await lockInstance(paths), null);
  await lock.release();
  assert.equal(await isSupervised(paths), false);
});

test('only services of a dead supervisor are ended: a reused pid is left alone', async () => {
  const paths = instancePaths(join(root, 'record'));
  await prepareInstance(paths, USER);
  assert.equal(await readInstanceRecord(paths), null);
  const [service, bystander] = [
    spawn('sleep', ['600'], { stdio: 'ignore' }),
    spawn('sleep', ['600'], { stdio: 'ignore' }),
  ];
  try {
    const [left, other] = await Promise.all([readProcess(service.pid ?? 0), readProcess(bystander.pid ?? 0)]);
    assert.ok(left !== null && other !== null);
    const services = { host: left, api: { ...other, startTicks: '1' } };
    await writeInstanceRecord(paths, {
      supervisor: { ...other, startTicks: '1' },
      url: 'http://127.0.0.1:1',
      services,
    });
    assert.equal(await endRecordedServices(await readInstanceRecord(paths)), 1);
    assert.equal(await isSame(left), false);
    assert.equal(await isSame(other), true);
    assert.equal(await endRecordedServices(await readInstanceRecord(paths)), 0);
  } finally {
    service.kill('SIGKILL');
    bystander.kill('SIGKILL');
  }
});
