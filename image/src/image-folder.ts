// A published image on disk: its files, and their verification. The only file of this workspace
// that the host imports; needs none of the build's tools.
import { createHash, randomUUID } from 'node:crypto';
import { readFile, rename, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import { sha256OfFile } from '@berth/os/digest.ts';
import { hasCode } from '@berth/os/errors.ts';
import { sparseSha256 } from './sparse-digest.ts';

const sha256 = z.string().regex(/^[0-9a-f]{64}$/);

/** Fixed file names of an image. */
export const IMAGE_FILES = ['vmlinuz', 'initramfs', 'root.ext4', 'manifest.json'] as const;
type ImageFile = (typeof IMAGE_FILES)[number];

const imageRecord = z.strictObject({
  /** 1: of earlier releases, whose id is a digest of the recipe. */
  format: z.union([z.literal(1), z.literal(2)]),
  imageId: z.string().regex(/^[0-9a-f]{24}$/),
  /** Version of the guest protocol that its guest daemon speaks; absent in format 1. */
  guestProtocol: z.int().min(1).optional(),
  recipeHash: sha256,
  manifestDigest: sha256,
  kernelVersion: z.string().min(1),
  /** Kernel command line required by this root; a caller may append to it. */
  kernelArguments: z.array(z.string()),
  nodeVersion: z.string().min(1),
  builtAt: z.iso.datetime(),
  files: z.record(
    z.enum(IMAGE_FILES),
    z.strictObject({
      sizeBytes: z.int().positive(),
      /** Digest of the file's bytes; for `root.ext4`, of its data, see sparse-digest.ts. */
      sha256,
    }),
  ),
});
export type ImageRecord = z.infer<typeof imageRecord>;

/**
 * Id of an image: the first 96 bits, in hex, of the SHA-256 of all that a VM gets from it. Images
 * of one id are equal to the byte, wherever they were built.
 */
export function imageIdOf({ guestProtocol, kernelArguments, files }: Omit<ImageRecord, 'imageId'>): string {
  const content = IMAGE_FILES.map((name) => [name, files[name].sizeBytes, files[name].sha256]);
  return createHash('sha256')
    .update(JSON.stringify([guestProtocol ?? null, kernelArguments, content]))
    .digest('hex')
    .slice(0, 24);
}

/** A verified image. Paths are absolute. */
export interface Image {
  /** Digest of its content. Of an image of format 1: digest of its recipe. */
  imageId: string;
  folder: string;
  kernelPath: string;
  initramfsPath: string;
  /** Raw ext4, sparse, never written. */
  rootPath: string;
  manifestPath: string;
  kernelVersion: string;
  kernelArguments: string[];
  /** Virtual size of the root disk. */
  diskBytes: number;
  record: ImageRecord;
}

/** An image is missing, incomplete or changed. The message names the file and the fault. */
export class ImageError extends Error {
  override readonly name = 'ImageError';
}

const remembered = z.object({ imageJsonSha256: sha256, files: z.record(z.string(), z.string()) });

/**
 * A file with unchanged inode, size and times was not written since: programs cannot set the change
 * time.
 */
async function fingerprint(path: string): Promise<string> {
  const found = await stat(path, { bigint: true });
  return [found.ino, found.size, found.mtimeNs, found.ctimeNs].join(':');
}

async function fingerprints(folder: string): Promise<Record<string, string>> {
  return Object.fromEntries(
    await Promise.all(IMAGE_FILES.map(async (name) => [name, await fingerprint(join(folder, name))])),
  );
}

async function digestOf(folder: string, name: ImageFile, signal: AbortSignal): Promise<string> {
  const path = join(folder, name);
  if (name === 'root.ext4') return sparseSha256(path, signal);
  return sha256OfFile(path, signal);
}

/**
 * Opens the image in a folder and verifies every file by checksum.
 * @param options.verify `remembered`: skips files verified before and not written since (same
 * inode, size and times); `full`: reads every file. Both check presence and sizes.
 * @throws {@link ImageError}
 */
export async function openImage(
  folder: string,
  options: { verify: 'remembered' | 'full'; signal?: AbortSignal },
): Promise<Image> {
  const signal = options.signal ?? AbortSignal.timeout(300_000);
  const text = await readFile(join(folder, 'image.json'), 'utf8').catch((error: unknown) => {
    if (hasCode(error, 'ENOENT')) throw new ImageError(`There is no image in ${folder}`, { cause: error });
    throw error;
  });
  const record = parseRecord(text, folder);
  if (record.format === 2 && record.imageId !== imageIdOf(record))
    throw new ImageError(`${join(folder, 'image.json')} was changed: its id ${record.imageId} is of other content`);
  for (const name of IMAGE_FILES) {
    const found = await stat(join(folder, name)).catch((error: unknown) => {
      if (hasCode(error, 'ENOENT')) throw new ImageError(`The image in ${folder} lacks ${name}`, { cause: error });
      throw error;
    });
    const { sizeBytes } = record.files[name];
    if (found.size !== sizeBytes)
      throw new ImageError(`${join(folder, name)} has ${found.size} bytes instead of ${sizeBytes}`);
  }
  const imageJsonSha256 = createHash('sha256').update(text).digest('hex');
  const before = await fingerprints(folder);
  if (options.verify === 'full' || !(await isRemembered(folder, imageJsonSha256, before))) {
    for (const name of IMAGE_FILES) {
      const digest = await digestOf(folder, name, signal);
      const expected = record.files[name].sha256;
      if (digest !== expected) {
        throw new ImageError(
          `${join(folder, name)} differs from the built file: SHA-256 ${digest} instead of ${expected}`,
        );
      }
    }
    // Taken before reading: a concurrent write changes the times, so that the file is read again
    // next time.
    await remember(folder, { imageJsonSha256, files: before });
  }
  return {
    imageId: record.imageId,
    folder,
    kernelPath: join(folder, 'vmlinuz'),
    initramfsPath: join(folder, 'initramfs'),
    rootPath: join(folder, 'root.ext4'),
    manifestPath: join(folder, 'manifest.json'),
    kernelVersion: record.kernelVersion,
    kernelArguments: record.kernelArguments,
    diskBytes: record.files['root.ext4'].sizeBytes,
    record,
  };
}

const agentsInManifest = z.object({
  agents: z.array(z.object({ id: z.string(), package: z.string() })).default([]),
});

/** Coding agents in the image, with their npm packages. */
export async function agentsOf(image: Image): Promise<z.infer<typeof agentsInManifest>['agents']> {
  return agentsInManifest.parse(JSON.parse(await readFile(image.manifestPath, 'utf8'))).agents;
}

function parseRecord(text: string, folder: string): ImageRecord {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw new ImageError(`${join(folder, 'image.json')} is not JSON`, { cause: error });
  }
  const result = imageRecord.safeParse(value);
  if (!result.success)
    throw new ImageError(`${join(folder, 'image.json')} is not a record of an image: ${z.prettifyError(result.error)}`);
  return result.data;
}

async function isRemembered(folder: string, imageJsonSha256: string, files: Record<string, string>): Promise<boolean> {
  let text: string;
  try {
    text = await readFile(join(folder, 'verified.json'), 'utf8');
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return false;
    throw error;
  }
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return false; // an unreadable note counts as none: the files are read instead
  }
  const note = remembered.safeParse(value);
  return (
    note.success &&
    note.data.imageJsonSha256 === imageJsonSha256 &&
    IMAGE_FILES.every((name) => note.data.files[name] === files[name])
  );
}

async function remember(folder: string, note: z.infer<typeof remembered>): Promise<void> {
  const unfinished = join(folder, `verified.${randomUUID()}.tmp`);
  try {
    await writeFile(unfinished, JSON.stringify(note));
    await rename(unfinished, join(folder, 'verified.json'));
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code;
    // A caller with read-only access verifies the image each time.
    if (code !== 'EACCES' && code !== 'EROFS' && code !== 'EPERM') throw error;
  }
}

export async function describeImageFiles(folder: string, signal: AbortSignal): Promise<ImageRecord['files']> {
  const entries = await Promise.all(
    IMAGE_FILES.map(async (name) => [
      name,
      { sizeBytes: (await stat(join(folder, name))).size, sha256: await digestOf(folder, name, signal) },
    ]),
  );
  return Object.fromEntries(entries) as ImageRecord['files'];
}
