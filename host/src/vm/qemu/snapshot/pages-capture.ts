// Copies and hashes the pages that a process has changed into a new memory file. Runs in a separate
// thread (pages-worker.ts); validates every number; knows nothing of QEMU.
import { createHash } from 'node:crypto';
import { readSync } from 'node:fs';
import { open, type FileHandle } from 'node:fs/promises';
import { assertRuns } from '@berth/os/process-identity.ts';
import { fileCipher } from './encryption.ts';
import { encodeRuns, ownPages, PAGE_BYTES, PAGEMAP_ENTRY_BYTES, type BlockRun } from './page-runs.ts';
import { CHUNK_BYTES, type CaptureJob, type MemoryFile, type Stop } from './pages-job.ts';
import type { RamBlock } from '../machine/ram-blocks.ts';

/** Map entries read at a time. */
const MAP_PAGES = 65_536;
/** Bytes handed to the disk while reading continues, which shortens the final flush. */
const FLUSH_EVERY_BYTES = 33_554_432;
const ZERO_PAGE = Buffer.alloc(PAGE_BYTES);

/** The file is durable when this resolves. */
export async function capture(job: CaptureJob, throwIfStopped: Stop): Promise<MemoryFile> {
  const { pid } = job.process;
  await using map = await open(`/proc/${pid}/pagemap`, 'r');
  await using memory = await open(`/proc/${pid}/mem`, 'r');
  await using file = await open(job.path, 'wx', 0o600);
  // The files stay open, so they belong to the recorded process even if its pid is reused.
  await assertRuns(job.process);
  const out = new MemoryWriter(file, job.key);
  for (const [number, block] of job.blocks.entries())
    await captureBlock(number, block, map, memory, out, throwIfStopped);

  return await out.end();
}

async function captureBlock(
  number: number,
  block: RamBlock,
  map: FileHandle,
  memory: FileHandle,
  out: MemoryWriter,
  throwIfStopped: Stop,
): Promise<void> {
  const pages = block.sizeBytes / PAGE_BYTES;
  const halves = new Uint32Array(MAP_PAGES * 2);
  for (let from = 0; from < pages; from += MAP_PAGES) {
    throwIfStopped();
    const count = Math.min(MAP_PAGES, pages - from);
    const entries = Buffer.from(halves.buffer, 0, count * PAGEMAP_ENTRY_BYTES);
    readWhole(map.fd, entries, (block.address / PAGE_BYTES + from) * PAGEMAP_ENTRY_BYTES, 'the page map');
    for (const { firstPage, pages: length } of ownPages(halves.subarray(0, count * 2), from)) {
      for (let done = 0; done < length;) {
        throwIfStopped();
        const room = await out.room();
        const taken = Math.min(length - done, room.length / PAGE_BYTES);
        readWhole(
          memory.fd,
          room.subarray(0, taken * PAGE_BYTES),
          block.address + (firstPage + done) * PAGE_BYTES,
          'guest memory',
        );
        out.take(number, firstPage + done, taken, block.origin === 'zeroes');
        done += taken;
      }
    }
  }
}

/** Buffers pages, and writes and hashes each full buffer. */
class MemoryWriter {
  readonly #file: FileHandle;
  readonly #encrypt: (bytes: Buffer) => Buffer;
  readonly #hash = createHash('sha256');
  readonly #runs: BlockRun[] = [];
  readonly #buffer = Buffer.alloc(CHUNK_BYTES);
  #used = 0;
  #written = 0;
  #flushedBytes = 0;
  #flush: Promise<unknown> = Promise.resolve();
  #flushing = false;

  constructor(file: FileHandle, key: Uint8Array | null) {
    this.#file = file;
    this.#encrypt = key === null ? (bytes) => bytes : fileCipher(key, 0);
  }

  /** Free space for the next pages: a multiple of the page size, at least one page. */
  async room(): Promise<Buffer> {
    if (this.#used === CHUNK_BYTES) await this.#writeOut();

    return this.#buffer.subarray(this.#used);
  }

  /**
   * Accepts pages placed at the start of the free space. `withoutZeroes` drops zero pages, which
   * need not be written.
   */
  take(block: number, firstPage: number, pages: number, withoutZeroes: boolean): void {
    let kept = 0;
    for (let page = 0; page < pages; page += 1) {
      const from = this.#used + page * PAGE_BYTES;
      if (withoutZeroes && ZERO_PAGE.compare(this.#buffer, from, from + PAGE_BYTES) === 0) continue;

      if (kept < page) this.#buffer.copyWithin(this.#used + kept * PAGE_BYTES, from, from + PAGE_BYTES);

      kept += 1;
      const last = this.#runs.at(-1);
      if (last !== undefined && last.block === block && last.firstPage + last.pages === firstPage + page)
        last.pages += 1;
      else this.#runs.push({ block, firstPage: firstPage + page, pages: 1 });
    }
    this.#used += kept * PAGE_BYTES;
  }

  /** Writes the rest and the table; the file is durable when this resolves. */
  async end(): Promise<MemoryFile> {
    await this.#writeOut();
    const dataBytes = this.#written;
    const table = this.#encrypt(encodeRuns(this.#runs));
    this.#hash.update(table);
    await writeAll(this.#file, table, dataBytes);
    await this.#flush;
    await this.#file.sync();
    return { dataBytes, runs: this.#runs.length, sha256: this.#hash.digest('hex') };
  }

  async #writeOut(): Promise<void> {
    const chunk = this.#encrypt(this.#buffer.subarray(0, this.#used));
    // Writing happens in another thread while this one hashes.
    const writing = writeAll(this.#file, chunk, this.#written);
    this.#hash.update(chunk);
    await writing;
    this.#written += this.#used;
    this.#used = 0;
    if (this.#written - this.#flushedBytes >= FLUSH_EVERY_BYTES && !this.#flushing) {
      this.#flushedBytes = this.#written;
      this.#flushing = true;
      this.#flush = this.#file.datasync().finally(() => (this.#flushing = false));
      // The final flush reports the failure.
      this.#flush.catch(() => undefined);
    }
  }
}

async function writeAll(file: FileHandle, bytes: Buffer, position: number): Promise<void> {
  for (let done = 0; done < bytes.length;) {
    const { bytesWritten } = await file.write(bytes, done, bytes.length - done, position + done);
    done += bytesWritten;
  }
}

/** Synchronous: reads of /proc never block, so the thread pool would only add cost. */
function readWhole(fd: number, into: Buffer, position: number, what: string): void {
  for (let done = 0; done < into.length;) {
    const bytesRead = readSync(fd, into, done, into.length - done, position + done);
    if (bytesRead === 0) throw new Error(`${what} ended early`);

    done += bytesRead;
  }
}
