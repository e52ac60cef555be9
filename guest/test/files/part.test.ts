// Parts of a file of any length, and the version that tells whether its content has changed.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { chmod, mkdir, open, rename, truncate, utimes, writeFile } from 'node:fs/promises';
import type { Duplex } from 'node:stream';
import { test } from 'node:test';
import { fileOffer } from '@berth/protocol/calls/files.ts';
import { FILE_TRANSFERS } from '@berth/protocol/guest-limits.ts';
import { firstLine } from '@berth/protocol/http/first-line.ts';
import { startDaemon, until } from '../daemon.ts';
import { TestFiles } from './files-daemon.ts';

const GIB = 1_073_741_824;

interface Offer {
  size: number;
  version: string | null;
  stream: Duplex;
}

async function offered(files: TestFiles, name: string): Promise<Offer | string> {
  const stream = await files.open(name, {}, 'part');
  if (typeof stream === 'string') return stream;
  stream.on('error', () => undefined);
  return { ...fileOffer.decode(await firstLine(stream, 256)), stream };
}

async function offerOf(files: TestFiles, name: string): Promise<Offer> {
  const offer = await offered(files, name);
  if (typeof offer === 'string') throw new Error(`${name}: ${offer}`);
  return offer;
}

async function versionOf(files: TestFiles, name: string): Promise<string | null> {
  const { version, stream } = await offerOf(files, name);
  stream.destroy();
  return version;
}

async function part(files: TestFiles, name: string, first: number, length: number): Promise<string> {
  const { stream } = await offerOf(files, name);
  stream.write(`${first} ${length}\n`);
  return Buffer.concat((await stream.toArray()) as Buffer[]).toString();
}

test('any part of a file is sent, and nothing of an empty one', async (t) => {
  const files = new TestFiles(await startDaemon(t));
  await writeFile(files.at('f'), '0123456789');
  assert.equal((await offerOf(files, 'f')).size, 10);
  for (const [first, length, expected] of [
    [0, 10, '0123456789'],
    [3, 4, '3456'],
    [9, 1, '9'],
    [10, 0, ''],
    [0, 0, ''],
  ] as const)
    assert.equal(await part(files, 'f', first, length), expected);
  await writeFile(files.at('empty'), '');
  const empty = await offerOf(files, 'empty');
  assert.deepEqual([empty.size, typeof empty.version], [0, 'string']);
  assert.equal(await part(files, 'empty', 0, 0), '');
});

test('the last bytes of a sparse file of 5 GiB are sent at once', async (t) => {
  const files = new TestFiles(await startDaemon(t));
  const file = await open(files.at('sparse'), 'w');
  await file.truncate(5 * GIB);
  await file.write('the end', 5 * GIB - 7);
  await file.close();
  const { size } = await offerOf(files, 'sparse');
  assert.equal(size, 5 * GIB);
  assert.equal(await part(files, 'sparse', size - 7, 7), 'the end');
  assert.equal(await part(files, 'sparse', 4 * GIB + 5, 3), '\0\0\0');
});

test('each change of the content changes the version, also one that keeps size and mtime', async (t) => {
  const files = new TestFiles(await startDaemon(t));
  const path = files.at('f');
  const when = new Date('2020-01-01T00:00:00Z');
  const seen = new Set<string | null>();
  const expectNew = async (what: string): Promise<void> => {
    const version = await versionOf(files, 'f');
    assert.ok(version !== null && !seen.has(version), what);
    assert.equal(await versionOf(files, 'f'), version, 'it is stable');
    seen.add(version);
  };
  await writeFile(path, 'first');
  await utimes(path, when, when);
  await expectNew('new');
  await writeFile(path, 'other', { flag: 'r+' });
  await utimes(path, when, when);
  await expectNew('written in place, with the former mtime');
  await writeFile(files.at('g'), 'third');
  await utimes(files.at('g'), when, when);
  await rename(files.at('g'), path);
  await expectNew('replaced by a file of the same size and mtime');
  await writeFile(path, '+', { flag: 'a' });
  await expectNew('appended');
  await truncate(path, 2);
  await expectNew('cut');
  await chmod(path, 0o666);
  await expectNew('its mode is part of it');
  assert.ok(Buffer.isBuffer(await files.write('f', '..')));
  await expectNew('written by a call, in place');
});

test('a file that changes between two parts has another version and its new content', async (t) => {
  const files = new TestFiles(await startDaemon(t));
  await files.write('f', 'old content');
  const before = await offerOf(files, 'f');
  await files.write('f', 'new content');
  before.stream.write('0 3\n');
  assert.equal(Buffer.concat((await before.stream.toArray()) as Buffer[]).toString(), 'old', 'of the open file');
  assert.notEqual(await versionOf(files, 'f'), before.version);
  assert.equal(await part(files, 'f', 0, 3), 'new');
});

test('a part of a file that shrinks meanwhile breaks off', async (t) => {
  const files = new TestFiles(await startDaemon(t));
  await writeFile(files.at('f'), Buffer.alloc(1_000));
  const { stream } = await offerOf(files, 'f');
  await truncate(files.at('f'), 400);
  stream.write('300 700\n');
  await assert.rejects(async () => {
    let got = 0;
    for await (const chunk of stream as AsyncIterable<Buffer>) got += chunk.length;
    if (got < 700) throw new Error('ended early');
  });
});

test('a generated file has no version and is sent as a whole', async (t) => {
  const files = new TestFiles(await startDaemon(t));
  const { size, version, stream } = await offerOf(files, '/proc/self/status');
  assert.equal(version, null);
  stream.write(`0 ${size}\n`);
  assert.match(Buffer.concat((await stream.toArray()) as Buffer[]).toString(), /^Name:/);
});

test('only regular files are offered, without waiting; odd names are', async (t) => {
  const daemon = await startDaemon(t);
  const files = new TestFiles(daemon);
  await mkdir(files.at('folder'));
  await daemon.exec(String.raw`mkfifo fifo; ln -s folder link; ln -s nowhere dangling; ln -s loop loop; touch closed
    chmod 0 closed; printf odd > "$(printf 'odd\n\033')"; touch "$(printf 'odd\n\377')"; ln -s fifo to-fifo`);
  for (const [name, refusal] of [
    ['fifo', '400 not_a_file'],
    ['to-fifo', '400 not_a_file'],
    ['folder', '400 not_a_file'],
    ['link', '400 not_a_file'],
    ['/dev/zero', '400 not_a_file'],
    ['dangling', '404 file_not_found'],
    ['loop', '400 file_path_invalid'],
    ['closed/below', '400 not_a_directory'],
    ['closed', '403 file_access_denied'],
  ] as const)
    assert.equal(await offered(files, name), refusal, name);
  assert.equal(await part(files, 'odd\n\u001b', 0, 3), 'odd');
});

test('a wrong order, and a caller that leaves, close the file and free its place', async (t) => {
  const files = new TestFiles(await startDaemon(t));
  await writeFile(files.at('f'), 'content');
  for (const order of ['x\n', '0\n', '0 8\n', '7 1\n', '-1 2\n', '0 1 2\n', '0 1'.padEnd(100), null]) {
    const { stream } = await offerOf(files, 'f');
    if (order === null) stream.destroy();
    else stream.write(order);
    if (!stream.closed) await once(stream.resume(), 'close');
  }
  const { atOnce } = FILE_TRANSFERS;
  await until('all places are free', async () => {
    const offers = await Promise.all(Array.from({ length: atOnce }, () => offerOf(files, 'f')));
    for (const { stream } of offers) stream.destroy();
    return true;
  });
});
