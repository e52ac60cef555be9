import assert from 'node:assert/strict';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { SnapshotUnusable } from '../../../../src/vm/driver.ts';
import { readProcess } from '@berth/os/process-identity.ts';
import { fileCipher, fileKey } from '../../../../src/vm/qemu/snapshot/encryption.ts';
import {
  digest,
  hasManifest,
  isSameDisk,
  readManifest,
  writeManifest,
  type Manifest,
} from '../../../../src/vm/qemu/snapshot/manifest.ts';
import { decodeRuns, encodeRuns, ownPages } from '../../../../src/vm/qemu/snapshot/page-runs.ts';
import { Pages } from '../../../../src/vm/qemu/snapshot/pages.ts';
import { blockOf } from '../../../../src/vm/qemu/machine/ram-blocks.ts';

const NEVER = new AbortController().signal;
const MIB = 2 ** 20;

async function folderFor(context: TestContext): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'berth-snapshot-'));
  context.after(() => rm(folder, { recursive: true }));
  return folder;
}

test('private pages of a process are those present or swapped out without a file', () => {
  const upper = { absent: 0, own: 0x8000_0000, swapped: 0x4000_0000, file: 0xa000_0000, softDirty: 0x8080_0000 };
  const kinds = ['file', 'own', 'own', 'absent', 'swapped', 'softDirty', 'file', 'own'] as const;
  const halves = Uint32Array.from(kinds.flatMap((kind) => [0xffff_ffff, upper[kind]]));
  assert.deepEqual(ownPages(halves, 100), [
    { firstPage: 101, pages: 2 },
    { firstPage: 104, pages: 2 },
    { firstPage: 107, pages: 1 },
  ]);
});

test('a run table is read back as written, and one with invalid entries is refused', () => {
  const runs = [
    { block: 0, firstPage: 3, pages: 2 },
    { block: 1, firstPage: 0, pages: 1 },
  ];
  const sizes = [5 * 4_096, 4_096];
  assert.deepEqual(decodeRuns(encodeRuns(runs), sizes, 3 * 4_096), runs);
  assert.equal(decodeRuns(encodeRuns(runs), sizes, 4 * 4_096), null);
  assert.equal(decodeRuns(encodeRuns([{ block: 0, firstPage: 4, pages: 2 }]), sizes, 2 * 4_096), null);
  assert.equal(decodeRuns(encodeRuns([{ block: 2, firstPage: 0, pages: 1 }]), sizes, 4_096), null);
  assert.equal(decodeRuns(encodeRuns([{ block: 1, firstPage: 0, pages: 0 }]), sizes, 0), null);
});

const RAMBLOCK = [
  '              Block Name    PSize              Offset               Used              Total                HVA  RO',
  '                     mem    4 KiB  0x0000000000000000 0x0000000000100000 0x0000000000100000 0x00007ff000000000  rw',
  ' /objects/module0-memory    4 KiB  0x0000000000100000 0x0000000000200000 0x0000000000200000 0x00007ff100000000  rw',
].join('\n');
const MAPS = [
  '7ff000000000-7ff000100000 rw-p 00000000 08:01 7  /template/memory',
  '7ff100000000-7ff100100000 rw-p 00000000 00:00 0',
].join('\n');

test('guest memory is located by QEMU and confirmed by the kernel', () => {
  assert.deepEqual(blockOf(RAMBLOCK, MAPS, 'mem', MIB, 'template'), {
    address: 0x7ff0_0000_0000,
    sizeBytes: MIB,
    origin: 'template',
  });
  assert.throws(() => blockOf(RAMBLOCK, MAPS, 'mem', 2 * MIB, 'template'), /no memory mem of 2 MiB/);
  // Only half of the block is mapped.
  assert.throws(() => blockOf(RAMBLOCK, MAPS, 'module0-memory', 2 * MIB, 'zeroes'), /at an unmapped address/);
  assert.throws(
    () => blockOf(RAMBLOCK, MAPS.replace('rw-p', 'rw-s'), 'mem', MIB, 'template'),
    /at an unmapped address/,
  );
  assert.throws(() => blockOf('', MAPS, 'mem', MIB, 'template'), /no memory mem/);
});

const MANIFEST: Manifest = {
  format: 1,
  vmId: 'sbx_a',
  capturedAt: '2026-01-02T03:04:05.678Z',
  templateId: 't',
  imageId: 'i',
  qemuVersion: '10.0.2',
  machineHash: 'h',
  devices: { cpus: [1], modules: [{ id: 'module0', sizeMib: 1_024, address: 2 ** 32, slot: 0 }], diskGib: 10 },
  memoryFile: { dataBytes: 8_192, runs: 1, sha256: 'a'.repeat(64) },
  devicesFile: { sizeBytes: 3, sha256: 'b'.repeat(64) },
  disk: { sizeBytes: 196_616, modifiedNs: '1795229403531945724' },
};

test('a manifest is read back as written, and a changed one is unusable', async (context) => {
  const folder = await folderFor(context);
  assert.equal(await hasManifest(folder), false);
  await assert.rejects(readManifest(folder), SnapshotUnusable);
  await writeManifest(folder, MANIFEST);
  assert.equal(await hasManifest(folder), true);
  assert.deepEqual(await readManifest(folder), MANIFEST);
  const path = join(folder, 'manifest.json');
  await writeFile(path, (await readFile(path, 'utf8')).replace('"diskGib": 10', '"diskGib": 90'));
  await assert.rejects(readManifest(folder), SnapshotUnusable);
});

test('a snapshot fits its disk and a copy of it, but neither after a write', () => {
  const captured = { sizeBytes: 8, modifiedNs: '5', inode: '1', mark: 'a'.repeat(32) };
  assert.equal(isSameDisk(captured, captured), true);
  assert.equal(isSameDisk(captured, { ...captured, inode: '2', modifiedNs: '9' }), true);
  assert.equal(isSameDisk(captured, { ...captured, modifiedNs: '9' }), false);
  const { mark: _, ...unmarked } = captured;
  for (const other of [{ ...captured, mark: 'b'.repeat(32) }, unmarked, { ...captured, sizeBytes: 9 }])
    assert.equal(isSameDisk(captured, { ...other, inode: '2' }), false);
  // In manifests of earlier releases the time decides.
  const former = { sizeBytes: 8, modifiedNs: '5' };
  assert.equal(isSameDisk(former, { ...captured, inode: '2' }), true);
  assert.equal(isSameDisk(former, { ...captured, modifiedNs: '9' }), false);
});

test('the manifest of an encrypted snapshot is authenticated with the disk key', async (context) => {
  const folder = await folderFor(context);
  const [key, other] = [1, 2].map((byte) => Buffer.alloc(32, byte).toString('base64url')) as [string, string];
  const manifest = { ...MANIFEST, salt: '0'.repeat(32) };
  await writeManifest(folder, manifest, key);
  assert.deepEqual(await readManifest(folder, key), manifest);
  for (const wrong of [other, null]) await assert.rejects(readManifest(folder, wrong), SnapshotUnusable);
  await writeManifest(folder, MANIFEST);
  await assert.rejects(readManifest(folder, key), SnapshotUnusable);
});

test('a file of a snapshot decrypts from any page on, under a key of its own', () => {
  const diskKey = Buffer.alloc(32, 1).toString('base64url');
  const salts = ['0', '1'].map((digit) => digit.repeat(32));
  const keys = salts.flatMap((salt) => (['memory', 'devices'] as const).map((file) => fileKey(diskKey, salt, file)));
  const plain = Buffer.alloc(5 * 4_096, 'page');
  const sealed = keys.map((key) => fileCipher(key, 0)(plain));
  assert.equal(new Set(sealed.map((bytes) => bytes.toString('hex'))).size, keys.length);
  for (const [at, key] of keys.entries()) {
    const decrypt = fileCipher(key, 2 * 4_096);
    const parts = [2, 3, 4].map((page) => decrypt((sealed[at] as Buffer).subarray(page * 4_096, (page + 1) * 4_096)));
    assert.deepEqual(Buffer.concat(parts), plain.subarray(2 * 4_096));
  }
});

test('a manifest can name only vCPUs and memory modules of this driver', async (context) => {
  const folder = await folderFor(context);
  const [module] = MANIFEST.devices.modules;
  for (const wrong of [{ id: 'x,driver=vfio-pci' }, { slot: 64 }, { address: 4_096 }, { sizeMib: 100 }]) {
    const devices = {
      ...MANIFEST.devices,
      modules: [{ ...module, ...wrong } as Manifest['devices']['modules'][number]],
    };
    await assert.rejects(writeManifest(folder, { ...MANIFEST, devices }));
  }
  assert.equal(await hasManifest(folder), false);
});

test('pages of a process other than the recorded one are not read', async (context) => {
  const folder = await folderFor(context);
  const pages = new Pages();
  context.after(() => pages.close());
  const self = await readProcess(process.pid);
  assert.ok(self);
  const job = {
    kind: 'capture' as const,
    process: { ...self, startTicks: '1' },
    blocks: [],
    path: join(folder, 'memory'),
    key: null,
  };
  await assert.rejects(pages.capture(job, NEVER), /has ended/);
});

test('a changed memory file is detected before anything is written', async (context) => {
  const folder = await folderFor(context);
  const pages = new Pages();
  context.after(() => pages.close());
  const self = await readProcess(process.pid);
  assert.ok(self);
  const path = join(folder, 'memory');
  const blocks = [{ address: 4_096, sizeBytes: 4_096, origin: 'zeroes' as const }];
  const content = Buffer.concat([Buffer.alloc(4_096), encodeRuns([{ block: 0, firstPage: 7, pages: 1 }])]);
  const patch = (sha256: string): Promise<void> =>
    pages.patch(
      { kind: 'patch', path, memory: { dataBytes: 4_096, runs: 1, sha256 }, key: null },
      Promise.resolve({ process: self, blocks }),
      NEVER,
    );
  await assert.rejects(patch(digest(content)), SnapshotUnusable);
  await writeFile(path, Buffer.alloc(100));
  await assert.rejects(patch(digest(content)), /differs from the captured size/);
  await writeFile(path, content);
  await assert.rejects(patch(digest(content)), /pages that the VM does not have/);
});

test('a memory file is read before the VM exists, and released when there will be none', async (context) => {
  const folder = await folderFor(context);
  const pages = new Pages();
  context.after(() => pages.close());
  const path = join(folder, 'memory');
  const content = Buffer.concat([Buffer.alloc(4_096), encodeRuns([{ block: 0, firstPage: 0, pages: 1 }])]);
  await writeFile(path, content);
  const job = (sha256: string) => ({
    kind: 'patch' as const,
    path,
    memory: { dataBytes: 4_096, runs: 1, sha256 },
    key: null,
  });
  const nowhere = new Promise<never>(() => undefined);
  await assert.rejects(pages.patch(job('a'.repeat(64)), nowhere, NEVER), /SHA-256 differs/);
  // More than there are threads: queued ones are cancelled too.
  const abort = new AbortController();
  const given = Array.from({ length: 5 }, () => pages.patch(job(digest(content)), nowhere, abort.signal));
  const outcomes = Promise.allSettled(given);
  abort.abort(new Error('no machine'));
  for (const outcome of await outcomes)
    assert.match(String(outcome.status === 'rejected' ? outcome.reason : outcome.status), /no machine/);

  await assert.rejects(pages.patch(job('a'.repeat(64)), nowhere, NEVER), /SHA-256 differs/, 'the threads serve on');
});
