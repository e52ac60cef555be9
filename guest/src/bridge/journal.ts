// Append-only files of JSON lines. A line is complete once its newline is written: a torn or
// corrupt line is skipped. Written lines survive the end of every process; the daemon flushes those
// that it shows to callers.
import {
  closeSync,
  constants,
  fstatSync,
  ftruncateSync,
  openSync,
  readFileSync,
  readSync,
  renameSync,
  statSync,
  writeSync,
} from 'node:fs';
import { nullOn } from '@berth/os/errors.ts';

const CHUNK_BYTES = 262_144;
/** More than the longest line: a text of the limit, each unit escaped with six bytes. */
export const LINE_BYTES = 1_048_576;
const NEWLINE = 0x0a;

export class Journal {
  readonly path: string;
  #fd: number;

  /** Opens the file for its single writer; removes a torn last line. */
  constructor(path: string) {
    this.path = path;
    this.#fd = openSync(path, 'a+', 0o600);
    const { size } = fstatSync(this.#fd);
    const whole = endOfLines(this.#fd, size);
    if (whole < size) ftruncateSync(this.#fd, whole);
  }

  append(value: object): void {
    const line = Buffer.from(`${JSON.stringify(value)}\n`);
    const { size } = fstatSync(this.#fd);
    try {
      for (let written = 0; written < line.length;)
        written += writeSync(this.#fd, line, written, line.length - written);
    } catch (error) {
      // A full disk takes a part of a line.
      ftruncateSync(this.#fd, size);
      throw error;
    }
  }

  /** Moves the content to `older`, which is replaced, if it has more than `bytes`. */
  rotate(older: string, bytes: number): void {
    if (fstatSync(this.#fd).size <= bytes) return;

    renameSync(this.path, older);
    closeSync(this.#fd);
    this.#fd = openSync(this.path, 'a+', 0o600);
  }

  close(): void {
    closeSync(this.#fd);
  }
}

/** Offset after the last newline. */
function endOfLines(fd: number, size: number): number {
  const chunk = Buffer.alloc(Math.min(CHUNK_BYTES, size));
  for (let end = size; end > 0;) {
    const start = Math.max(0, end - chunk.length);
    const bytes = readSync(fd, chunk, 0, end - start, start);
    const at = chunk.subarray(0, bytes).lastIndexOf(NEWLINE);
    if (at >= 0) return start + at + 1;

    end = start;
  }
  return 0;
}

/**
 * Calls `take` with each complete line from `from` on; returns the offset to continue at. Skips
 * lines of over {@link LINE_BYTES}, also unfinished ones: root in the guest may write any file.
 */
export function readLines(path: string, from: number, take: (line: Buffer, offset: number) => boolean): number {
  const fd = openFile(path);
  if (fd === null) return from;

  try {
    let offset = from;
    let rest = Buffer.alloc(0);
    let isSkipping = false;
    for (;;) {
      const chunk = Buffer.alloc(CHUNK_BYTES);
      const bytes = readSync(fd, chunk, 0, chunk.length, offset + rest.length);
      if (bytes === 0) return offset;

      rest = isSkipping ? chunk.subarray(0, bytes) : Buffer.concat([rest, chunk.subarray(0, bytes)]);
      let start = 0;
      for (let end = rest.indexOf(NEWLINE); end >= 0; end = rest.indexOf(NEWLINE, start)) {
        const isLine = !isSkipping && end - start <= LINE_BYTES;
        if (isLine && !take(rest.subarray(start, end), offset + start)) return offset + start;

        isSkipping = false;
        start = end + 1;
      }
      isSkipping ||= rest.length - start > LINE_BYTES;
      if (isSkipping) start = rest.length;
      offset += start;
      rest = rest.subarray(start);
    }
  } finally {
    closeSync(fd);
  }
}

/** A small JSON file; null without one, for a longer one and for a corrupt one. */
export function readSmallJson(path: string): Record<string, unknown> | null {
  const fd = openFile(path);
  if (fd === null) return null;

  try {
    return fstatSync(fd).size > LINE_BYTES ? null : parseLine(readFileSync(fd));
  } finally {
    closeSync(fd);
  }
}

/** Opens a regular file for reads; null without one. A pipe would block this process. */
function openFile(path: string): number | null {
  const flags = constants.O_RDONLY | constants.O_NONBLOCK;
  const fd = nullOn(['ENOENT', 'ENOTDIR', 'ENXIO'], () => openSync(path, flags));
  if (fd === null || fstatSync(fd).isFile()) return fd;

  closeSync(fd);
  return null;
}

/** The object of a line; null for a corrupt one, as a power cut may leave. */
export function parseLine(line: Buffer): Record<string, unknown> | null {
  try {
    const value: unknown = JSON.parse(line.toString('utf8'));
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : null;
  } catch {
    return null;
  }
}

/** Finds lines by a growing number, which is the first field of each. */
export class NumberedLines {
  readonly #path: string;
  readonly #number: RegExp;
  #inode = 0;
  #scanned = 0;
  #last = 0;
  #first = 0;
  /** A number and its offset, about each 256 KiB. */
  #marks: [number: number, offset: number][] = [];

  constructor(path: string, field: string) {
    this.#path = path;
    this.#number = new RegExp(`^\\{"${field}":(\\d{1,16})[,}]`);
  }

  /** Number of the last line; 0 if there is none. */
  get last(): number {
    this.#scan();
    return this.#last;
  }

  get first(): number {
    this.#scan();
    return this.#first;
  }

  /** Calls `take` with the lines above `after` until it returns false. */
  read(after: number, take: (value: Record<string, unknown>) => boolean): void {
    this.#scan();
    if (this.#last <= after) return;

    const from = this.#marks.findLast(([number]) => number <= after)?.[1] ?? 0;
    readLines(this.#path, from, (line) => {
      if ((this.#numberOf(line) ?? 0) <= after) return true;

      const value = parseLine(line);
      return value === null || take(value);
    });
  }

  #scan(): void {
    const found = nullOn(['ENOENT'], () => statSync(this.#path));
    if (found === null || found.ino !== this.#inode || found.size < this.#scanned) {
      [this.#scanned, this.#last, this.#first, this.#marks] = [0, 0, 0, []];
      this.#inode = found?.ino ?? 0;
    }
    if (found === null || found.size === this.#scanned) return;

    this.#scanned = readLines(this.#path, this.#scanned, (line, offset) => {
      const number = this.#numberOf(line);
      if (number === null || number <= this.#last) return true;

      if (this.#first === 0) this.#first = number;

      this.#last = number;
      if (offset - (this.#marks.at(-1)?.[1] ?? -CHUNK_BYTES) >= CHUNK_BYTES) this.#marks.push([number, offset]);

      return true;
    });
  }

  #numberOf(line: Buffer): number | null {
    const found = this.#number.exec(line.toString('latin1', 0, 40))?.[1];
    return found === undefined ? null : Number(found);
  }
}
