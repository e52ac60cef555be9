import assert from 'node:assert/strict';
import { mkdtemp, open, readFile, rm, truncate, unlink, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, it } from 'node:test';
import {
  agentsOf,
  describeImageFiles,
  IMAGE_FILES,
  ImageError,
  imageIdOf,
  openImage,
  type ImageRecord,
} from '../src/image-folder.ts';
import { deadlineOf } from '../../os/test/until.ts';

const ID = '0123456789abcdef01234567';
const HASH = 'ab'.repeat(32);

describe('an image folder', () => {
  let folder: string;
  let signal: AbortSignal;

  beforeEach(async () => {
    signal = AbortSignal.timeout(deadlineOf(60_000));
    folder = await mkdtemp(join(tmpdir(), 'berth-image-'));
    for (const name of IMAGE_FILES) await writeFile(join(folder, name), `content of ${name}`);
    await truncate(join(folder, 'root.ext4'), 2 ** 30);
    const record = {
      format: 1,
      imageId: ID,
      recipeHash: HASH,
      manifestDigest: HASH,
      kernelVersion: '6.12.0',
      kernelArguments: ['quiet'],
      nodeVersion: '24.0.0',
      builtAt: '2026-01-01T00:00:00.000Z',
      files: await describeImageFiles(folder, signal),
    };
    await writeFile(join(folder, 'image.json'), JSON.stringify(record));
  });
  afterEach(() => rm(folder, { recursive: true }));

  async function overwrite(name: string, position: number, text: string): Promise<void> {
    const handle = await open(join(folder, name), 'r+');
    await handle.write(text, position);
    await handle.close();
  }

  it('opens with the paths and facts of the image when every file is unchanged', async () => {
    const image = await openImage(folder, { verify: 'full' });
    assert.equal(image.imageId, ID);
    assert.equal(image.rootPath, join(folder, 'root.ext4'));
    assert.equal(image.diskBytes, 2 ** 30);
    assert.deepEqual(image.kernelArguments, ['quiet']);
  });

  it('is refused when its record names other content than its id', async () => {
    const path = join(folder, 'image.json');
    const old = JSON.parse(await readFile(path, 'utf8')) as ImageRecord;
    const record = { ...old, format: 2 as const, guestProtocol: 6 };
    const imageId = imageIdOf(record);
    await writeFile(path, JSON.stringify({ ...record, imageId }));
    assert.equal((await openImage(folder, { verify: 'full' })).imageId, imageId);
    for (const other of [{ kernelArguments: [] }, { guestProtocol: 7 }, { imageId: ID }]) {
      await writeFile(path, JSON.stringify({ ...record, imageId, ...other }));
      await assert.rejects(openImage(folder, { verify: 'remembered' }), /was changed: its id .* is of other content/);
    }
  });

  it('names the coding agents of its manifest, none for an image of an older checkout', async () => {
    const image = await openImage(folder, { verify: 'full' });
    const agents = [{ id: 'agent_one', package: '@a/b@1' }];
    await writeFile(image.manifestPath, JSON.stringify({ format: 1, agents, packages: [] }));
    assert.deepEqual(await agentsOf(image), agents);
    await writeFile(image.manifestPath, JSON.stringify({ format: 1, packages: [] }));
    assert.deepEqual(await agentsOf(image), []);
  });

  for (const name of ['vmlinuz', 'initramfs', 'root.ext4', 'manifest.json'] as const) {
    it(`is refused when a byte of ${name} changed after its verification`, async () => {
      await openImage(folder, { verify: 'remembered' });
      await overwrite(name, 3, 'X');
      await assert.rejects(openImage(folder, { verify: 'remembered' }), (error: Error) => {
        assert.ok(error instanceof ImageError);
        assert.match(error.message, new RegExp(`${name.replace('.', '\\.')} differs from the built file`));
        return true;
      });
    });
  }

  it('is refused when a hole of the disk was written to', async () => {
    await overwrite('root.ext4', 2 ** 29, 'X');
    await assert.rejects(openImage(folder, { verify: 'remembered' }), /root\.ext4 differs from the built file/);
  });

  it("is refused when a change was hidden by restoring the file's time", async () => {
    await openImage(folder, { verify: 'remembered' });
    const times = new Date('2026-01-01T00:00:00Z');
    await utimes(join(folder, 'vmlinuz'), times, times);
    await openImage(folder, { verify: 'remembered' });
    await overwrite('vmlinuz', 0, 'X');
    await utimes(join(folder, 'vmlinuz'), times, times);
    await assert.rejects(openImage(folder, { verify: 'remembered' }), /vmlinuz differs from the built file/);
  });

  it('is refused before any read when a file has another size', async () => {
    await openImage(folder, { verify: 'remembered' });
    await truncate(join(folder, 'root.ext4'), 2 ** 30 + 4096);
    await assert.rejects(
      openImage(folder, { verify: 'remembered' }),
      /root\.ext4 has 1073745920 bytes instead of 1073741824/,
    );
  });

  it('is refused by name when a file is missing', async () => {
    await unlink(join(folder, 'initramfs'));
    await assert.rejects(openImage(folder, { verify: 'remembered' }), /lacks initramfs/);
  });

  it('is refused when its record is missing or invalid', async () => {
    const text = await readFile(join(folder, 'image.json'), 'utf8');
    await writeFile(join(folder, 'image.json'), text.slice(0, -5));
    await assert.rejects(openImage(folder, { verify: 'remembered' }), /is not JSON/);
    await writeFile(join(folder, 'image.json'), text.replace(ID, 'short'));
    await assert.rejects(openImage(folder, { verify: 'remembered' }), /is not a record of an image/);
    await unlink(join(folder, 'image.json'));
    await assert.rejects(openImage(folder, { verify: 'remembered' }), /There is no image/);
  });

  it('rereads a file when the verification note is damaged', async () => {
    await openImage(folder, { verify: 'remembered' });
    await overwrite('vmlinuz', 0, 'X');
    await writeFile(join(folder, 'verified.json'), '{"files":');
    await assert.rejects(openImage(folder, { verify: 'remembered' }), /vmlinuz differs from the built file/);
  });

  it('ignores the note when the record was replaced', async () => {
    await openImage(folder, { verify: 'remembered' });
    const record = JSON.parse(await readFile(join(folder, 'image.json'), 'utf8')) as {
      files: { vmlinuz: { sha256: string } };
    };
    record.files.vmlinuz.sha256 = HASH;
    await writeFile(join(folder, 'image.json'), JSON.stringify(record));
    await assert.rejects(openImage(folder, { verify: 'remembered' }), /vmlinuz differs from the built file/);
  });
});
