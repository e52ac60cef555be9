// A local file that is read in parts, and must stay the same meanwhile.
import { createHash } from 'node:crypto';
import { createReadStream, statSync, type BigIntStats } from 'node:fs';
import { open, type FileHandle } from 'node:fs/promises';
import { Readable } from 'node:stream';
import type { UploadSource } from '@berth/sdk';
import { CliFailure } from '../output/failure.ts';
import { plainText } from '../output/plain-text.ts';

export class LocalFileChanged extends CliFailure {}

/**
 * The holder closes it.
 */
export class LocalFile implements UploadSource {
  readonly #path: string;
  readonly #file: FileHandle;
  readonly #stat: BigIntStats;

  private constructor(path: string, file: FileHandle, stat: BigIntStats) {
    this.#path = path;
    this.#file = file;
    this.#stat = stat;
  }

  static async open(path: string): Promise<LocalFile> {
    const file = await open(path);
    return new LocalFile(path, file, await file.stat({ bigint: true }));
  }

  async close(): Promise<void> {
    await this.#file.close();
  }

  get size(): number {
    return Number(this.#stat.size);
  }

  get mode(): number {
    return Number(this.#stat.mode);
  }

  get mtime(): number {
    return Math.floor(Number(this.#stat.mtimeMs) / 1_000);
  }

  /** Name of the part: the same for the same target until this file changes. */
  partName(target: string): string {
    const key = [...versionOf(this.#stat), target].join('\0');
    return `.berth-cp-${createHash('sha256').update(key).digest('hex').slice(0, 24)}`;
  }

  slice(from: number, to: number): Blob {
    this.verify();
    return new Part(this.#file, from, to);
  }

  async sha256(): Promise<string> {
    const hash = createHash('sha256');
    for await (const chunk of createReadStream('', { fd: this.#file.fd, start: 0, autoClose: false }))
      hash.update(chunk as Buffer);
    return hash.digest('hex');
  }

  /** Throws if the file has changed since it was opened. */
  verify(): void {
    const now = statSync(this.#path, { bigint: true, throwIfNoEntry: false });
    if (now !== undefined && versionOf(now).join() === versionOf(this.#stat).join()) return;
    throw new LocalFileChanged(
      `${plainText(this.#path)} changed while it was copied: nothing was written to the target`,
      {
        remedy: 'run the command again when the file is complete',
      },
    );
  }
}

/** Differs after each change of the content: no program can set the time of the inode. */
function versionOf({ dev, ino, size, mtimeNs, ctimeNs }: BigIntStats): bigint[] {
  return [dev, ino, size, mtimeNs, ctimeNs];
}

/**
 * Bytes of a file as the body of a request, read as they are sent. Slices of `openAsBlob` are wrong
 * from 2 GiB on, and Blobs of bytes would be hundreds of MiB of garbage.
 */
class Part extends Blob {
  readonly #file: FileHandle;
  readonly #range: { start: number; end: number };

  constructor(file: FileHandle, from: number, to: number) {
    super([]);
    this.#file = file;
    this.#range = { start: from, end: to - 1 };
    Object.defineProperty(this, 'size', { value: to - from });
  }

  override stream(): ReturnType<Blob['stream']> {
    // A stream of the handle itself would leave a listener on it.
    const content = createReadStream('', { fd: this.#file.fd, ...this.#range, autoClose: false });
    return Readable.toWeb(content);
  }
}
