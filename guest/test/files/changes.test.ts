// Deletes, moves, folders, conditional writes and transfers of any length.
import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { lstat, mkdir, readdir, readFile, readlink, symlink, writeFile } from 'node:fs/promises';
import { test } from 'node:test';
import { FILE_TRANSFERS } from '@berth/protocol/guest-limits.ts';
import { startDaemon, until } from '../daemon.ts';
import { opened, TestFiles, textOf } from './files-daemon.ts';

const sha256 = (content: string | Buffer): string => createHash('sha256').update(content).digest('hex');

test('a delete removes a file, an empty folder or a link itself, and all of a folder only if asked', async (t) => {
  const daemon = await startDaemon(t);
  const files = new TestFiles(daemon);
  const remove = (name: string, recursive = false): Promise<string> =>
    files.change('DELETE', '/file', { path: files.at(name), ...(recursive ? { recursive: 'true' } : {}) });
  await daemon.exec(`mkdir -p full/deep/er kept; printf kept > kept/f; touch full/deep/f; ln -s ../kept full/link
    touch 'full/deep/\n'`);
  assert.equal(await remove('full'), '409 folder_not_empty');
  assert.equal(await remove('full/deep/er'), '{}');
  assert.equal(await remove('full/deep/f'), '{}');
  assert.equal(await remove('full', true), '{}');
  assert.equal(await remove('full', true), '404 file_not_found');
  assert.equal(await remove('/', true), '500 file_system_error');
  assert.deepEqual([await readdir(files.at('.')), await readFile(files.at('kept/f'), 'utf8')], [['kept'], 'kept']);
});

test('a move keeps an existing target unless told to replace it, and moves links as links', async (t) => {
  const files = new TestFiles(await startDaemon(t));
  const move = (path: string, to: string, replace = false): Promise<string> =>
    files.change('POST', '/file/move', {
      path: files.at(path),
      to: files.at(to),
      ...(replace ? { replace: 'true' } : {}),
    });
  await writeFile(files.at('a'), 'a');
  await writeFile(files.at('b'), 'b');
  await mkdir(files.at('folder/full'), { recursive: true });
  await symlink('nowhere', files.at('link'));
  assert.equal(await move('a', 'b'), '409 file_exists');
  assert.equal(await readFile(files.at('b'), 'utf8'), 'b');
  assert.equal(await move('a', 'b', true), '{}');
  assert.equal(await readFile(files.at('b'), 'utf8'), 'a');
  assert.equal(await move('a', 'c'), '404 file_not_found');
  assert.equal(await move('b', 'missing/b'), '404 file_not_found');
  assert.equal(await move('folder', 'folder/full/in-itself'), '500 file_system_error');
  assert.equal(await move('link', 'moved'), '{}');
  assert.equal(await readlink(files.at('moved')), 'nowhere');
  await mkdir(files.at('empty'));
  assert.equal(await move('empty', 'folder', true), '409 folder_not_empty');
  assert.equal(await move('folder', 'empty', true), '{}');
  assert.deepEqual((await readdir(files.at('.'))).toSorted(), ['b', 'empty', 'moved']);
});

test('a folder is created with its parents, and an existing path is refused', async (t) => {
  const files = new TestFiles(await startDaemon(t));
  const make = (name: string): Promise<string> => files.change('POST', '/folder', { path: files.at(name) });
  assert.equal(await make('a/b c/d'), '{}');
  assert.ok((await lstat(files.at('a/b c/d'))).isDirectory());
  assert.equal(await make('a/b c'), '409 file_exists');
  await writeFile(files.at('f'), '');
  assert.equal(await make('f/g'), '400 not_a_directory');
});

test('a conditional write replaces only the content that its caller has seen', async (t) => {
  const files = new TestFiles(await startDaemon(t));
  assert.equal(await files.write('f', 'first', sha256('')), '409 file_changed', 'missing');
  assert.ok(Buffer.isBuffer(await files.write('f', 'first', 'absent')));
  assert.equal(await files.write('f', 'other', 'absent'), '409 file_exists');
  assert.ok(Buffer.isBuffer(await files.write('f', '', sha256('first'))));
  assert.ok(Buffer.isBuffer(await files.write('f', 'third', sha256(''))));
  assert.equal(await files.write('f', 'lost', sha256('first')), '409 file_changed');
  await symlink('f', files.at('link'));
  assert.equal(await files.write('link', 'lost', sha256('second')), '409 file_changed');
  assert.ok(Buffer.isBuffer(await files.write('link', 'fourth', sha256('third'))));
  assert.equal(await files.text('f'), 'fourth');
  const long = randomBytes(2_000_000);
  await files.write('f', long);
  assert.ok(Buffer.isBuffer(await files.write('f', 'short', sha256(long))));
  assert.deepEqual((await readdir(files.at('.'))).toSorted(), ['f', 'link']);
});

test('of two conditional writes that have seen the same content, one at most succeeds', async (t) => {
  const files = new TestFiles(await startDaemon(t));
  await files.write('f', 'base');
  const first = await files.write('f', 'mine', sha256('base'));
  const second = await files.write('f', 'theirs', sha256('base'));
  assert.deepEqual([Buffer.isBuffer(first), second], [true, '409 file_changed']);
  assert.equal(await files.text('f'), 'mine');
});

test('a transfer carries a file of any length in both directions', async (t) => {
  const files = new TestFiles(await startDaemon(t));
  const content = randomBytes(20_000_000);
  for (const condition of [{}, { ifUnchanged: sha256(content) }]) {
    const stream = opened(await files.open('new/f', { bytes: String(content.length), ...condition }));
    stream.write(content);
    assert.equal(await textOf(stream), `{"size":${content.length}}\n`);
  }
  assert.ok((await readFile(files.at('new/f'))).equals(content));
  const got = Buffer.concat((await opened(await files.open('new/f')).toArray()) as Buffer[]);
  assert.equal(got.toString('latin1', 0, 9), '20000000\n');
  assert.ok(got.subarray(9).equals(content));
  const empty = opened(await files.open('empty', { bytes: '0' }));
  assert.equal(await textOf(empty), '{"size":0}\n');
  assert.equal(await textOf(opened(await files.open('empty'))), '0\n');
  assert.match(await textOf(opened(await files.open('/proc/self/status'))), /^\d+\nName:/);
});

test('a transfer that breaks off leaves the old file whole and nothing else', async (t) => {
  const daemon = await startDaemon(t);
  const files = new TestFiles(daemon);
  await files.write('f', 'old');
  for (const end of ['end', 'destroy'] as const) {
    const stream = opened(await files.open('f', { bytes: '9000000' }));
    stream.write(Buffer.alloc(5_000_000));
    await once(stream, 'drain');
    stream[end]();
    stream.resume();
    if (!stream.closed) await new Promise((resolve) => stream.once('close', resolve));
  }
  await until('all transfers are over', async () => {
    const probes = await Promise.all(
      Array.from({ length: FILE_TRANSFERS.atOnce }, async () => textOf(opened(await files.open('f')))),
    );
    return probes.every((text) => text === '3\nold');
  });
  assert.deepEqual(await readdir(files.at('.')), ['f']);
});

test('a transfer is refused for anything but a regular file, in its first or its last line', async (t) => {
  const daemon = await startDaemon(t);
  const files = new TestFiles(daemon);
  await daemon.exec('mkfifo fifo; ln -s loop loop; mkdir folder');
  for (const [name, refusal] of [
    ['fifo', '400 not_a_file'],
    ['folder', '400 not_a_file'],
    ['loop', '400 file_path_invalid'],
    ['missing', '404 file_not_found'],
    ['/dev/zero', '400 not_a_file'],
  ] as const)
    assert.equal(await files.open(name), refusal);

  for (const [name, code] of [
    ['fifo', 'not_a_file'],
    ['folder', 'not_a_file'],
    ['loop', 'file_path_invalid'],
    ['fifo/below', 'not_a_directory'],
  ] as const) {
    const stream = opened(await files.open(name, { bytes: '3' }));
    stream.write('abc');
    assert.deepEqual(JSON.parse(await textOf(stream)), { error: { code } });
  }
});

test('a refusal reaches a caller that is still sending', async (t) => {
  const files = new TestFiles(await startDaemon(t));
  await files.write('f', 'old');
  const bytes = 9_000_000;
  for (let round = 0; round < 5; round += 1) {
    const stream = opened(await files.open('f', { bytes: String(bytes), ifUnchanged: 'absent' }));
    stream.write(Buffer.alloc(bytes - 1));
    assert.deepEqual(JSON.parse(await textOf(stream)), { error: { code: 'file_exists' } });
  }
  assert.equal(await files.text('f'), 'old');
});

test('a file that grows during a transfer is sent as it was; one that shrinks breaks the stream', async (t) => {
  const files = new TestFiles(await startDaemon(t));
  const size = 30_000_000;
  await writeFile(files.at('f'), Buffer.alloc(size, 1));
  const stream = opened(await files.open('f'));
  await once(stream, 'readable');
  await writeFile(files.at('f'), 'more', { flag: 'a' });
  let got = 0;
  for await (const chunk of stream as AsyncIterable<Buffer>) got += chunk.length;
  assert.equal(got, `${size}\n`.length + size);

  const cut = opened(await files.open('f'));
  await once(cut, 'readable');
  await writeFile(files.at('f'), 'short');
  await assert.rejects(async () => {
    let bytes = 0;
    for await (const chunk of cut as AsyncIterable<Buffer>) bytes += chunk.length;
    if (bytes < size) throw new Error('ended early');
  });
});

test('transfers take no places of other calls and are refused beyond their queue', async (t) => {
  const files = new TestFiles(await startDaemon(t));
  await writeFile(files.at('f'), 'x');
  const { atOnce, waiting } = FILE_TRANSFERS;
  const open = Array.from({ length: atOnce + waiting }, () => files.open('g', { bytes: '5' }));
  const streams = (await Promise.all(open)).map(opened);
  await until('the queue is full', async () => (await files.open('f')) === '429 guest_busy');
  assert.equal(await files.text('f'), 'x');
  for (const stream of streams) stream.destroy();
  await until('there is room', async () => typeof (await files.open('f')) !== 'string');
});
