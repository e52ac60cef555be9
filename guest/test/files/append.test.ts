// Appends at an offset: uploads that continue after a break.
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdir, readdir, readFile, rm, stat, symlink, truncate, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Duplex } from 'node:stream';
import { test } from 'node:test';
import { fileStored } from '@berth/protocol/calls/files.ts';
import { startDaemon, until } from '../daemon.ts';
import { helpersOf, opened, smallDisk, TestFiles, textOf, waitersOf } from './files-daemon.ts';

const root = process.getuid?.() === 0;

class Appender extends TestFiles {
  async begin(name: string, offset: number, bytes: number, mode?: string): Promise<Duplex> {
    const query = { bytes: String(bytes), offset: String(offset), ...(mode === undefined ? {} : { mode }) };
    return opened(await this.open(name, query));
  }

  /** The outcome of a whole append; null: none came. */
  async append(name: string, offset: number, content: Uint8Array | string, mode?: string): Promise<unknown> {
    const bytes = Buffer.from(content);
    const stream = await this.begin(name, offset, bytes.length, mode);
    stream.write(bytes);
    return await outcomeOf(stream);
  }

  async sizeOf(name: string): Promise<number> {
    const found = await this.stat(name);
    return typeof found === 'string' ? -1 : found.size;
  }

  /** Size of the file once no other append writes it. */
  async settledSize(name: string): Promise<number> {
    let size = 0;
    await until('an empty append succeeds', async () => {
      size = await this.sizeOf(name);
      return 'size' in ((await this.append(name, size, '')) as object);
    });
    return size;
  }
}

function refusalOf(outcome: Duplex | string): string {
  assert.ok(typeof outcome === 'string', 'a stream was opened');
  return outcome;
}

async function outcomeOf(stream: Duplex): Promise<unknown> {
  const text = await textOf(stream);
  return text === '' ? null : fileStored.parse(JSON.parse(text));
}

test('a file grows part by part; the first part makes folders and file with the given mode', async (t) => {
  const files = new Appender(await startDaemon(t));
  const content = randomBytes(3_000_001);
  for (const [from, to] of [
    [0, 1_000_000],
    [1_000_000, 1_000_001],
    [1_000_001, 1_000_001],
    [1_000_001, 3_000_001],
  ] as const) {
    const mode = from === 0 ? '0600' : '0777';
    assert.deepEqual(await files.append('a/b c/f\n', from, content.subarray(from, to), mode), { size: to });
  }
  assert.ok((await readFile(files.at('a/b c/f\n'))).equals(content));
  assert.equal((await stat(files.at('a/b c/f\n'))).mode & 0o7777, 0o600);
  assert.deepEqual(await files.append('plain', 0, ''), { size: 0 });
  assert.equal((await stat(files.at('plain'))).mode & 0o7777, 0o644);
  assert.deepEqual(await files.append('plain', 0, 'x'), { size: 1 }, 'an empty file');
  assert.deepEqual(await readdir(files.at('.')), ['a', 'plain']);
});

test('a file of another size is refused with its size, and a missing one makes no folder', async (t) => {
  const files = new Appender(await startDaemon(t));
  await files.write('f', 'abc');
  for (const offset of [0, 2, 4, 9_007_199_254_740_991])
    assert.deepEqual(await files.append('f', offset, 'new'), { error: { code: 'file_changed', size: 3 } });
  assert.deepEqual(await files.append('new/g', 1, 'x'), { error: { code: 'file_not_found' } });
  assert.deepEqual(await files.append('f/g', 0, 'x'), { error: { code: 'not_a_directory' } });
  assert.deepEqual([await files.text('f'), await readdir(files.at('.'))], ['abc', ['f']]);
  for (const query of [
    { offset: '3', ifUnchanged: 'absent' },
    { offset: '-1' },
    { offset: '1e3' },
    { offset: '9007199254740992' },
  ])
    assert.match(refusalOf(await files.open('f', { bytes: '1', ...query })), /^400 /);
});

test('a planted link is never followed, and special files and folders are never opened', async (t) => {
  const daemon = await startDaemon(t);
  const files = new Appender(daemon);
  await daemon.exec('mkfifo fifo; mkdir folder; printf kept > kept; : > empty');
  await symlink('kept', files.at('to-file'));
  await symlink('empty', files.at('to-empty'));
  await symlink('nowhere', files.at('dangling'));
  await symlink('loop', files.at('loop'));
  for (const [name, offset] of [
    ['to-file', 4],
    ['to-empty', 0],
    ['dangling', 0],
    ['loop', 0],
    ['fifo', 0],
    ['folder', 0],
    ['/dev/null', 0],
  ] as const)
    assert.deepEqual(await files.append(name, offset, 'x'), { error: { code: 'not_a_file' } }, name);
  assert.equal(await files.text('kept'), 'kept');
  assert.equal(await files.sizeOf('empty'), 0);
  await symlink('folder', files.at('through'));
  assert.deepEqual(await files.append('through/f', 0, 'x'), { size: 1 }, 'a folder may be a link');
});

test('of concurrent appends at one offset exactly one succeeds, and the others get the new size', async (t) => {
  const files = new Appender(await startDaemon(t));
  await files.write('f', '0123');
  const first = await files.begin('f', 4, 2_000_000);
  first.write(Buffer.alloc(1_000_000, 'a'));
  await until('half of it is written', async () => (await files.sizeOf('f')) === 1_000_004);
  const others = [4, 4, 1_000_004].map((offset) => files.append('f', offset, 'intruder'));
  await until('the others wait', async () => (await waitersOf(files.at('f'))) === 3);
  first.write(Buffer.alloc(1_000_000, 'b'));
  assert.deepEqual(await outcomeOf(first), { size: 2_000_004 });
  for (const other of others) assert.deepEqual(await other, { error: { code: 'file_changed', size: 2_000_004 } });
  assert.equal(await files.text('f'), `0123${'a'.repeat(1_000_000)}${'b'.repeat(1_000_000)}`);

  const racing = await Promise.all(Array.from({ length: 4 }, (_, at) => files.append('g', 0, String(at).repeat(9))));
  assert.equal(racing.filter((outcome) => 'size' in (outcome as object)).length, 1);
  assert.match(await files.text('g'), /^(\d)\1{8}$/);
});

test('after a break the file has what arrived, and the rest gives the exact bytes', async (t) => {
  const daemon = await startDaemon(t);
  const files = new Appender(daemon);
  const content = randomBytes(8_000_000);
  let at = 0;
  const leave = {
    destroyed: (stream: Duplex) => stream.destroy(),
    'half closed': (stream: Duplex) => stream.end(),
    'helper killed': async () => {
      for (const pid of (await helpersOf(daemon)).slice(1)) process.kill(pid, 'SIGKILL');
    },
    'all helpers killed': async () => {
      for (const pid of await helpersOf(daemon)) process.kill(pid, 'SIGKILL');
    },
    'daemon killed': async () => {
      await daemon.stop('SIGKILL');
      await daemon.start();
    },
  };
  for (const [how, end] of Object.entries(leave)) {
    const stream = await files.begin('f', at, content.length - at);
    stream.write(content.subarray(at, at + 1_500_000));
    const before = at;
    await until(`bytes arrived: ${how}`, async () => (await files.sizeOf('f')) > before);
    const outcome = outcomeOf(stream).catch(() => null);
    await end(stream);
    assert.equal(await outcome, null, how);
    at = await files.settledSize('f');
    assert.ok(at > before && at <= before + 1_500_000, `${how}: ${before}, then ${at}`);
    assert.ok((await readFile(files.at('f'))).equals(content.subarray(0, at)), how);
  }
  assert.deepEqual(await files.append('f', at, content.subarray(at)), { size: content.length });
  assert.ok((await readFile(files.at('f'))).equals(content));
});

test('a full disk keeps the bytes that fit; the rest follows when there is space', { skip: !root }, async (t) => {
  const folder = await smallDisk(t);
  const files = new Appender(await startDaemon(t));
  const content = randomBytes(900_000);
  await writeFile(join(folder, 'filler'), Buffer.alloc(500_000));
  const path = join(folder, 'f');
  assert.deepEqual(await files.append(path, 0, content), { error: { code: 'guest_disk_full' } });
  const at = await files.sizeOf(path);
  assert.ok(at > 0 && at < content.length, String(at));
  assert.deepEqual(await files.append(path, at, content.subarray(at)), { error: { code: 'guest_disk_full' } });
  await rm(join(folder, 'filler'));
  const now = await files.sizeOf(path);
  assert.deepEqual(await files.append(path, now, content.subarray(now)), { size: content.length });
  assert.ok((await readFile(path)).equals(content));
});

test('an append behind 5 GiB writes there at once', async (t) => {
  const daemon = await startDaemon(t);
  const files = new Appender(daemon);
  await daemon.exec(': > f');
  await truncate(files.at('f'), 5 * 2 ** 30);
  assert.deepEqual(await files.append('f', 5 * 2 ** 30, 'end'), { size: 5 * 2 ** 30 + 3 });
  const { size, blocks } = await stat(files.at('f'));
  assert.ok(size === 5 * 2 ** 30 + 3 && blocks * 512 < 2 ** 20);
});

test('a refusal and a success close the connection, also while the body still arrives', async (t) => {
  const daemon = await startDaemon(t);
  const files = new Appender(daemon);
  await files.write('f', 'abc');
  const connections = async (): Promise<number> => (await readdir(`/proc/${daemon.pid}/fd`)).length;
  const before = await connections();
  for (let at = 0; at < 60; at += 1) {
    const stream = await files.begin(at % 3 === 0 ? 'new' + at : at % 3 === 1 ? 'f' : '.', 0, 3_000_000);
    stream.write(Buffer.alloc(3_000_000));
    await once(stream, 'data');
    stream.destroy();
  }
  await until('the daemon has closed them', async () => (await connections()) <= before);
});

test('files of others are refused and stay', { skip: !root }, async (t) => {
  const files = new Appender(await startDaemon(t));
  await writeFile(files.at('of-root'), '', { mode: 0o644 });
  await mkdir(files.at('closed'), { mode: 0o755 });
  assert.deepEqual(await files.append('of-root', 0, 'x'), { error: { code: 'file_access_denied' } });
  assert.deepEqual(await files.append('closed/f', 0, 'x'), { error: { code: 'file_access_denied' } });
  assert.deepEqual([(await stat(files.at('of-root'))).size, await readdir(files.at('closed'))], [0, []]);
});
