// Streams that the keeper stores: files named by the offset of their first byte.
import { closeSync, openSync, readdirSync, readSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { nullOn } from '@berth/os/errors.ts';
import type { StreamName } from './launch.ts';

/** Bytes of a stream. Those between the asked offset and `offset` are lost. */
export interface Piece {
  offset: number;
  bytes: Buffer;
}

/** Reads one stream from an offset on. */
export class StreamReader {
  /** Offset of the next byte to read. */
  offset: number;
  readonly #folder: string;
  #open: { fd: number; start: number } | undefined;

  constructor(folder: string, stream: StreamName, offset = 0) {
    this.#folder = join(folder, stream);
    this.offset = offset;
  }

  /** The next stored bytes, at most `limit`; empty: none yet. */
  read(limit: number): Piece {
    let bytes = this.#readOpen(limit);
    // The keeper may have gone on to the next files, and removed some of them.
    for (const start of bytes.length > 0 ? [] : this.#starts()) {
      this.close();
      const fd = nullOn(['ENOENT'], () => openSync(join(this.#folder, start.toString(16).padStart(16, '0')), 'r'));
      if (fd === null) continue;
      this.#open = { fd, start };
      this.offset = Math.max(this.offset, start);
      bytes = this.#readOpen(limit);
      if (bytes.length > 0) break;
    }
    const { offset } = this;
    this.offset += bytes.length;
    return { offset, bytes };
  }

  close(): void {
    if (this.#open !== undefined) closeSync(this.#open.fd);
    this.#open = undefined;
  }

  #readOpen(limit: number): Buffer {
    if (this.#open === undefined) return Buffer.alloc(0);
    const { fd, start } = this.#open;
    const bytes = Buffer.allocUnsafe(limit);
    return bytes.subarray(0, readSync(fd, bytes, 0, limit, this.offset - start));
  }

  /** Starts of the file that may contain the next byte, and of the files after it. */
  #starts(): number[] {
    const names = nullOn(['ENOENT'], () => readdirSync(this.#folder)) ?? [];
    const starts = names.map((name) => Number.parseInt(name, 16)).sort((one, other) => one - other);
    const first = starts.findLastIndex((start) => start <= this.offset);
    const opened = this.#open?.start ?? -1;
    return starts.slice(Math.max(0, first)).filter((start) => start > opened);
  }
}

/** Length of a stream: the offset behind its last stored byte. */
export function endOf(folder: string, stream: StreamName): number {
  const path = join(folder, stream);
  const last = (nullOn(['ENOENT'], () => readdirSync(path)) ?? []).toSorted().at(-1);
  if (last === undefined) return 0;
  return Number.parseInt(last, 16) + (statSync(join(path, last), { throwIfNoEntry: false })?.size ?? 0);
}

/** Removes the folder of a program, if it exists. The keeper may create a last file meanwhile. */
export function removeFolder(folder: string): void {
  rmSync(folder, { recursive: true, force: true, maxRetries: 10, retryDelay: 5 });
}
