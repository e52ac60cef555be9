// File calls under faults: a full disk, disconnects, too many calls at once, a dead helper.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmod, mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { connect, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { FILE_CALLS } from '@berth/protocol/guest-limits.ts';
import { fileProgramArguments } from '../../src/files/program.ts';
import { runs, startDaemon, until, type TestDaemon } from '../daemon.ts';
import { FILE_PROGRAM, helpersOf, smallDisk, TestFiles } from './files-daemon.ts';

const root = process.getuid?.() === 0;

/** Begins a write of ten bytes that stops after five. */
async function stalledWrite(daemon: TestDaemon, path: string): Promise<Socket> {
  const socket = connect(daemon.port, '127.0.0.1');
  socket.on('error', () => socket.destroy());
  await once(socket, 'connect');
  socket.write(`PUT /file?path=${encodeURIComponent(path)} HTTP/1.1\r\nhost: a\r\ncontent-length: 10\r\n\r\nfirst`);
  return socket;
}

test(
  'a full disk refuses a write and leaves the old file whole, replaced or in place',
  { skip: !root && 'needs a mount' },
  async (t) => {
    const folder = await smallDisk(t);
    const files = new TestFiles(await startDaemon(t));
    const old = 'o'.repeat(600_000);
    await files.write(join(folder, 'f'), old);
    await mkdir(join(folder, 'closed'));
    await writeFile(join(folder, 'closed/f'), 'old');
    await chmod(join(folder, 'closed/f'), 0o666);
    for (const name of ['f', 'new', 'closed/f'])
      assert.equal(await files.write(join(folder, name), 'n'.repeat(900_000)), '507 guest_disk_full', name);

    assert.equal(await readFile(join(folder, 'f'), 'utf8'), old);
    assert.equal(await readFile(join(folder, 'closed/f'), 'utf8'), 'old');
    assert.deepEqual((await readdir(folder)).toSorted(), ['closed', 'f']);
    assert.ok(Buffer.isBuffer(await files.write(join(folder, 'f'), 'short')));
  },
);

test('a caller that leaves during a write changes nothing, and its process is gone', async (t) => {
  const daemon = await startDaemon(t);
  const files = new TestFiles(daemon);
  await files.write('f', 'old');
  const socket = await stalledWrite(daemon, files.at('f'));
  await until('the helper works on it', async () => (await helpersOf(daemon)).length === 2);
  socket.destroy();
  await until('the helper is done with it', async () => (await helpersOf(daemon)).length === 1);
  assert.equal(await files.text('f'), 'old');
  assert.deepEqual(await readdir(daemon.codeFolder), ['f']);
});

test('calls run up to a limit, then queue, and are refused beyond the queue', async (t) => {
  const daemon = await startDaemon(t);
  const files = new TestFiles(daemon);
  await files.write('f', 'x');
  const stalled = await Promise.all(
    Array.from({ length: FILE_CALLS.atOnce }, () => stalledWrite(daemon, files.at('g'))),
  );
  await until('all are worked on', async () => (await helpersOf(daemon)).length === FILE_CALLS.atOnce + 1);
  let answered = 0;
  const waiting = Array.from({ length: FILE_CALLS.waiting }, () => files.text('f').finally(() => (answered += 1)));
  await until('the line is full', async () => (await files.read('f')) === '429 guest_busy');
  assert.equal(answered, 0);
  assert.equal((await daemon.exec('echo alive')).stdout, 'alive\n', 'commands do not wait');
  for (const socket of stalled) socket.destroy();
  assert.deepEqual(new Set(await Promise.all(waiting)), new Set(['x']));
  assert.equal(await files.text('f'), 'x');
});

test('a killed helper is restarted, and exits with the daemon', async (t) => {
  const daemon = await startDaemon(t);
  const files = new TestFiles(daemon);
  await files.write('f', 'x');
  for (let round = 0; round < 3; round += 1) {
    const [helper = 0] = await helpersOf(daemon);
    process.kill(helper, 'SIGKILL');
    await until('it has ended', async () => !(await runs(helper)));
    assert.equal(await files.text('f'), 'x');
    assert.notEqual((await helpersOf(daemon))[0], helper);
  }
  const [helper = 0] = await helpersOf(daemon);
  await daemon.stop('SIGKILL');
  await until('the helper has ended', async () => !(await runs(helper)));
});

test('the tenant cannot end or trace the helper', { skip: !root && 'needs another user' }, async (t) => {
  const daemon = await startDaemon(t);
  const [helper] = await helpersOf(daemon);
  const result = await daemon.exec(`kill -9 ${helper}; cat /proc/${helper}/environ; ls -l /proc/${helper}/fd`);
  assert.equal(result.stdout, '');
  assert.notEqual(result.exitCode, 0);
  assert.deepEqual(await helpersOf(daemon), [helper]);
});

test('without unnamed files a write uses a temporary file and removes it when it fails', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'berth-file-program-'));
  t.after(() => rm(folder, { recursive: true }));
  const socket = join(folder, 'socket');
  const [uid, gid] = [process.getuid?.() ?? 0, process.getgid?.() ?? 0];
  const helper = spawn('perl', [
    '-e',
    FILE_PROGRAM,
    ...fileProgramArguments({ socket, uid, gid, seconds: 30, tmpfile: 0 }),
  ]);
  t.after(() => helper.stdin.end());
  await once(helper.stdout, 'data');
  const write = async (path: string, content: string): Promise<string> => {
    const call = connect({ path: socket });
    const header = ['write', path, content.length, 0, 2_097_152, 0, -1].join('\0');
    call.write(`${header.length.toString(16).padStart(8, '0')}${header}${content}`);
    return Buffer.concat(await call.toArray()).toString();
  };
  await mkdir(join(folder, 'in'));
  const path = join(folder, 'in', 'f');
  assert.equal(await write(path, 'old'), 'ok 3\n');
  await chmod(path, 0o640);
  assert.equal(await write(path, 'newer'), 'ok 5\n');
  assert.deepEqual([await readFile(path, 'utf8'), (await stat(path)).mode & 0o777], ['newer', 0o640]);
  assert.equal(await write(join(folder, 'in'), 'x'), 'no directory\n');
  assert.deepEqual(await readdir(join(folder, 'in')), ['f']);
});
