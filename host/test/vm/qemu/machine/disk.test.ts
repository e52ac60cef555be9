import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { copyFile, mkdtemp, open, readFile, rm, truncate, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { promisify } from 'node:util';
import { DriverError } from '../../../../src/vm/driver.ts';
import { DISK_MAX_GIB } from '../../../../src/vm/machine-size.ts';
import {
  assertOwnOverlay,
  newMark,
  OVERLAY_MAX_GIB,
  readMark,
  writeMark,
  writeOverlay,
} from '../../../../src/vm/qemu/machine/disk.ts';
import { passphraseOf } from '../../../../src/vm/qemu/machine/luks.ts';

const run = promisify(execFile);
const BASE = 'b'.repeat(24);

async function pathFor(context: TestContext): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'berth-disk-'));
  context.after(() => rm(folder, { recursive: true }));
  return join(folder, 'disk.qcow2');
}

test('an overlay can be as large as the largest disk', () => {
  assert.equal(OVERLAY_MAX_GIB, DISK_MAX_GIB);
});

for (const sizeGib of [1, 10, 80, DISK_MAX_GIB]) {
  test(`qemu-img finds a ${sizeGib} GiB overlay intact, of that size and without a backing file`, async (context) => {
    const path = await pathFor(context);
    await writeOverlay(path, sizeGib, BASE);
    await run('qemu-img', ['check', '-f', 'qcow2', path]);
    const { stdout } = await run('qemu-img', ['info', '-f', 'qcow2', '--output', 'json', path]);
    const info = JSON.parse(stdout) as Record<string, unknown>;
    assert.equal(info['virtual-size'], sizeGib * 2 ** 30);
    assert.equal(info['backing-filename'], undefined);
  });
}

test('an overlay is intact after writes at both ends', async (context) => {
  const path = await pathFor(context);
  await writeOverlay(path, 10, BASE);
  await run('qemu-io', [
    '-f',
    'qcow2',
    '-c',
    'write -P 7 0 128k',
    '-c',
    `write -P 9 ${10 * 2 ** 30 - 65_536} 64k`,
    path,
  ]);
  await run('qemu-io', [
    '-f',
    'qcow2',
    '-c',
    'read -P 7 0 128k',
    '-c',
    `read -P 9 ${10 * 2 ** 30 - 65_536} 64k`,
    '-c',
    'read -P 0 1g 64k',
    path,
  ]);
  const { stdout } = await run('qemu-img', ['check', '-f', 'qcow2', path]);
  assert.match(stdout, /No errors were found/);
});

test('an overlay never replaces a file', async (context) => {
  const path = await pathFor(context);
  await writeOverlay(path, 10, BASE);
  await assert.rejects(writeOverlay(path, 10, BASE), { code: 'EEXIST' });
});

for (const sizeGib of [0, 1.5, DISK_MAX_GIB + 1]) {
  test(`a disk of ${sizeGib} GiB is refused`, async (context) => {
    await assert.rejects(writeOverlay(await pathFor(context), sizeGib, BASE), RangeError);
  });
}

test('an overlay written by a VM is valid, even if it was not closed', async (context) => {
  const path = await pathFor(context);
  await writeOverlay(path, 10, BASE);
  await assertOwnOverlay(path, BASE);
  await run('qemu-io', ['-f', 'qcow2', '-c', 'write -P 7 0 128k', path]);
  await run('qemu-img', ['resize', '-f', 'qcow2', path, '12G']);
  await assertOwnOverlay(path, BASE);
  await setBits(path, 79, 0b11);
  await assertOwnOverlay(path, BASE);
});

for (const sizeGib of [1, DISK_MAX_GIB]) {
  test(`QEMU opens an encrypted overlay of ${sizeGib} GiB with its passphrase only`, async (context) => {
    const path = await pathFor(context);
    const [key, other] = [1, 2].map((byte) => Buffer.alloc(32, byte).toString('base64url')) as [string, string];
    await writeOverlay(path, sizeGib, BASE, key);
    await assertOwnOverlay(path, BASE, true);
    const opened = async (diskKey: string): Promise<string[]> => {
      const secret = join(path, '..', 'passphrase');
      await writeFile(secret, passphraseOf(diskKey));
      const options = `driver=qcow2,file.filename=${path},encrypt.format=luks,encrypt.key-secret=pass`;
      return ['--object', `secret,id=pass,file=${secret}`, '--image-opts', options];
    };
    const io = async (diskKey: string, command: string) => run('qemu-io', [...(await opened(diskKey)), '-c', command]);
    await io(key, 'write -P 0x42 1M 128k');
    await io(key, `write -P 0x42 ${sizeGib * 2 ** 30 - 65_536} 64k`);
    await io(key, 'read -P 0x42 1M 128k');
    await assert.rejects(io(other, 'read 1M 128k'), /Invalid password/);
    assert.equal((await readFile(path)).includes('B'.repeat(64)), false);
    await run('qemu-img', ['check', ...(await opened(key))]);
    await assertOwnOverlay(path, BASE, true);
    await assert.rejects(assertOwnOverlay(path, BASE, false), DriverError);
  });
}

test('an overlay is refused on another base, and its mark survives QEMU and a copy', async (context) => {
  const path = await pathFor(context);
  await writeOverlay(path, 10, BASE);
  await assert.rejects(assertOwnOverlay(path, 'c'.repeat(24)), /based on template b{24}, not on c{24}/);
  const mark = newMark();
  await writeMark(path, BASE, mark);
  await run('qemu-io', ['-f', 'qcow2', '-c', 'write -P 7 0 128k', path]);
  await run('qemu-img', ['resize', '-f', 'qcow2', path, '12G']);
  // Rewrites the whole header.
  await run('qemu-img', ['amend', '-f', 'qcow2', '-o', 'lazy_refcounts=on', path]);
  await run('qemu-img', ['amend', '-f', 'qcow2', '-o', 'lazy_refcounts=off', path]);
  const copy = `${path}.copy`;
  await copyFile(path, copy);
  assert.equal(await readMark(copy), mark);
  await assertOwnOverlay(copy, BASE);
  await writeMark(copy, BASE, newMark());
  assert.notEqual(await readMark(copy), mark);
  await run('qemu-img', ['check', '-f', 'qcow2', copy]);
});

test('a disk of an earlier release has no mark until one is written', async (context) => {
  for (const key of [null, Buffer.alloc(32, 1).toString('base64url')]) {
    const path = await pathFor(context);
    await writeOverlay(path, 10, BASE, key);
    // As written before: nothing after the header, or after the extension of the encryption.
    await using file = await open(path, 'r+');
    await file.write(Buffer.alloc(48), 0, 48, key === null ? 104 : 128);
    assert.equal(await readMark(path), null);
    await assertOwnOverlay(path, 'c'.repeat(24), key !== null);
    const mark = newMark();
    await writeMark(path, BASE, mark);
    assert.equal(await readMark(path), mark);
    await assert.rejects(assertOwnOverlay(path, 'c'.repeat(24), key !== null), DriverError);
    if (key === null) await run('qemu-img', ['check', '-f', 'qcow2', path]);
  }
});

test('a header full of extensions is neither read beyond its end nor written', async (context) => {
  const path = await pathFor(context);
  await writeOverlay(path, 10, BASE);
  await using file = await open(path, 'r+');
  const header = Buffer.alloc(4_096 - 104);
  for (let at = 0; at < header.length; at += 16) header.set([0, 0, 0x12, 0x34, 0, 0, 0, 8], at);
  await file.write(header, 0, header.length, 104);
  assert.equal(await readMark(path), null);
  await assert.rejects(writeMark(path, BASE, newMark()), /the header of the disk is full/);
  await file.write(Buffer.alloc(8, 0xff), 0, 8, 104);
  assert.equal(await readMark(path), null);
});

test('an overlay in plain text is refused for an encrypted VM', async (context) => {
  const path = await pathFor(context);
  await writeOverlay(path, 10, BASE);
  await assert.rejects(assertOwnOverlay(path, BASE, true), DriverError);
});

for (const [what, at, bits] of [
  ['a file of its own for the data', 79, 0b100],
  ['a feature nobody knows', 72, 0x80],
  ['a backing file', 15, 1],
  ['encryption', 35, 1],
  ['another format', 0, 0x80],
] as const) {
  test(`an overlay whose header requests ${what} is refused`, async (context) => {
    const path = await pathFor(context);
    await writeOverlay(path, 10, BASE);
    await setBits(path, at, bits);
    await assert.rejects(assertOwnOverlay(path, BASE), DriverError);
  });
}

test('a file too short for a header is no overlay', async (context) => {
  const path = await pathFor(context);
  await writeOverlay(path, 10, BASE);
  await truncate(path, 100);
  await assert.rejects(assertOwnOverlay(path, BASE), DriverError);
});

async function setBits(path: string, at: number, bits: number): Promise<void> {
  await using file = await open(path, 'r+');
  const byte = Buffer.alloc(1);
  await file.read(byte, 0, 1, at);
  await file.write(Buffer.of((byte[0] ?? 0) | bits), 0, 1, at);
}
