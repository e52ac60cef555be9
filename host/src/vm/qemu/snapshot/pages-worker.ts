// The thread that copies guests' pages between QEMU processes and snapshots, and hashes them on the way. Takes one job at a time (pages-job.ts) and trusts no number
// that it did not check; knows nothing of QEMU.
import { createHash } from 'node:crypto';
import { open, type FileHandle } from 'node:fs/promises';
import { readSync, writeSync } from 'node:fs';
import { parentPort } from 'node:worker_threads';
import { isSame } from '../../process.ts';
import { decodeRuns, encodeRuns, ownPages, PAGE_BYTES, PAGEMAP_ENTRY_BYTES, RUN_ENTRY_BYTES, type BlockRun } from './page-runs.ts';
import type { CaptureJob, MemoryFile, PagesJob, PagesRequest, PagesResult, PatchJob } from './pages-job.ts';
import type { RamBlock } from './ram-blocks.ts';

const CHUNK_BYTES = 4_194_304;
/** Pages whose map entries are read at once. */
const MAP_PAGES = 65_536;
/** What is handed to the disk while more is being read, so that the last flush has little to wait for. */
const FLUSH_EVERY_BYTES = 33_554_432;
const ZERO_PAGE = Buffer.alloc(PAGE_BYTES);

type Stop = () => void;

class Unusable extends Error {}

parentPort?.on('message', ({ job, stop }: PagesRequest) => {
  const word = new Int32Array(stop);
  const throwIfStopped = (): void => {
    if (Atomics.load(word, 0) !== 0) {
      throw new Error('the copying of pages was given up');
    }
  };
  run(job, throwIfStopped).then(answer, (error: unknown) => answer({ failure: error instanceof Error ? error.message : String(error) }));
});

function answer(result: PagesResult): void {
  // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread has no origin
  parentPort?.postMessage(result);
}

async function run(job: PagesJob, throwIfStopped: Stop): Promise<PagesResult> {
  if (job.kind === 'capture') {
    return { memory: await capture(job, throwIfStopped) };
  }
  try {
    await patch(job, throwIfStopped);
    return { patched: true };
  } catch (error) {
    if (error instanceof Unusable) {
      return { unusable: error.message };
    }
    throw error;
  }
}

async function capture(job: CaptureJob, throwIfStopped: Stop): Promise<MemoryFile> {
  const { pid } = job.process;
  const map = await open(`/proc/${pid}/pagemap`, 'r');
  const memory = await open(`/proc/${pid}/mem`, 'r');
  const file = await open(job.path, 'wx', 0o600);
  try {
    await sameProcess(job);
    const out = new MemoryWriter(file);
    for (const [number, block] of job.blocks.entries()) {
      await captureBlock(number, block, map, memory, out, throwIfStopped);
    }
    return await out.end();
  } finally {
    await Promise.all([map.close(), memory.close(), file.close()]);
  }
}

/** Both files were opened by then: they stay the recorded process's, whoever has its number later. */
async function sameProcess({ process }: PagesJob): Promise<void> {
  if (!(await isSame(process))) {
    throw new Error(`the QEMU process ${process.pid} has ended`);
  }
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
        readWhole(memory.fd, room.subarray(0, taken * PAGE_BYTES), block.address + (firstPage + done) * PAGE_BYTES, 'guest memory');
        out.take(number, firstPage + done, taken, block.origin === 'zeroes');
        done += taken;
      }
    }
  }
}

/** Gathers pages in a buffer, and writes and hashes it whenever it is full. */
class MemoryWriter {
  readonly #file: FileHandle;
  readonly #hash = createHash('sha256');
  readonly #runs: BlockRun[] = [];
  readonly #buffer = Buffer.alloc(CHUNK_BYTES);
  #used = 0;
  #written = 0;
  #flushedBytes = 0;
  #flush: Promise<unknown> = Promise.resolve();
  #flushing = false;

  constructor(file: FileHandle) {
    this.#file = file;
  }

  /** Where the next pages go: a whole number of them, at least one. */
  async room(): Promise<Buffer> {
    if (this.#used === CHUNK_BYTES) {
      await this.#writeOut();
    }
    return this.#buffer.subarray(this.#used);
  }

  /** Pages that were put into the room, from its start. With `withoutZeroes` those that hold nothing are left out: they are there without being written. */
  take(block: number, firstPage: number, pages: number, withoutZeroes: boolean): void {
    let kept = 0;
    for (let page = 0; page < pages; page += 1) {
      const from = this.#used + page * PAGE_BYTES;
      if (withoutZeroes && ZERO_PAGE.compare(this.#buffer, from, from + PAGE_BYTES) === 0) {
        continue;
      }
      if (kept < page) {
        this.#buffer.copyWithin(this.#used + kept * PAGE_BYTES, from, from + PAGE_BYTES);
      }
      kept += 1;
      const last = this.#runs.at(-1);
      if (last !== undefined && last.block === block && last.firstPage + last.pages === firstPage + page) {
        last.pages += 1;
      } else {
        this.#runs.push({ block, firstPage: firstPage + page, pages: 1 });
      }
    }
    this.#used += kept * PAGE_BYTES;
  }

  /** Writes the rest and the table; the file is durable when this resolves. */
  async end(): Promise<MemoryFile> {
    await this.#writeOut();
    const dataBytes = this.#written;
    const table = encodeRuns(this.#runs);
    this.#hash.update(table);
    await writeAll(this.#file, table, dataBytes);
    await this.#flush;
    await this.#file.sync();
    return { dataBytes, runs: this.#runs.length, sha256: this.#hash.digest('hex') };
  }

  async #writeOut(): Promise<void> {
    const chunk = this.#buffer.subarray(0, this.#used);
    // The write runs in another thread while this one hashes.
    const writing = writeAll(this.#file, chunk, this.#written);
    this.#hash.update(chunk);
    await writing;
    this.#written += this.#used;
    this.#used = 0;
    if (this.#written - this.#flushedBytes >= FLUSH_EVERY_BYTES && !this.#flushing) {
      this.#flushedBytes = this.#written;
      this.#flushing = true;
      this.#flush = this.#file.datasync().finally(() => (this.#flushing = false));
      // Its failure is told by whoever waits for it in the end.
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

async function patch(job: PatchJob, throwIfStopped: Stop): Promise<void> {
  const { dataBytes, runs: runCount, sha256 } = job.memory;
  const file = await open(job.path, 'r').catch((error: NodeJS.ErrnoException) => {
    throw error.code === 'ENOENT' ? new Unusable('the memory file is gone') : error;
  });
  try {
    const tableBytes = runCount * RUN_ENTRY_BYTES;
    if ((await file.stat()).size !== dataBytes + tableBytes) {
      throw new Unusable('the memory file has another size than was captured');
    }
    const table = await readPart(file, Buffer.alloc(tableBytes), dataBytes);
    const sizes = job.blocks.map(({ sizeBytes }) => sizeBytes);
    const runs = decodeRuns(table, sizes, dataBytes);
    if (runs === null) {
      throw new Unusable('the memory file names pages that the machine does not have');
    }
    const memory = await open(`/proc/${job.process.pid}/mem`, 'r+');
    try {
      await sameProcess(job);
      const hash = createHash('sha256');
      const place = placeOf(runs, job.blocks);
      const buffers = [Buffer.alloc(CHUNK_BYTES), Buffer.alloc(CHUNK_BYTES)] as const;
      const read = (at: number, number: number): Promise<Buffer> => {
        const into = buffers[number % 2 === 0 ? 0 : 1].subarray(0, Math.max(0, Math.min(CHUNK_BYTES, dataBytes - at)));
        const reading = readPart(file, into, at);
        // Its failure is told by whoever waits for it.
        reading.catch(() => undefined);
        return reading;
      };
      let next = read(0, 0);
      for (let at = 0, number = 0; at < dataBytes; at += CHUNK_BYTES, number += 1) {
        throwIfStopped();
        const chunk = await next;
        // The next part is read in another thread while this one hashes and writes.
        next = read(at + CHUNK_BYTES, number + 1);
        hash.update(chunk);
        for (let done = 0; done < chunk.length;) {
          const { address, bytes } = place(at + done);
          const length = Math.min(bytes, chunk.length - done);
          writeWhole(memory.fd, chunk.subarray(done, done + length), address);
          done += length;
        }
      }
      await next;
      if (hash.update(table).digest('hex') !== sha256) {
        throw new Unusable('the memory file is not what was captured: its SHA-256 differs');
      }
    } finally {
      await memory.close();
    }
  } finally {
    await file.close();
  }
}

/** For ascending offsets in the file: the address its byte belongs to, and how many bytes go on from there. */
function placeOf(runs: readonly BlockRun[], blocks: readonly RamBlock[]): (offset: number) => { address: number; bytes: number } {
  let at = 0;
  let runStart = 0;
  return (offset) => {
    let run = runs[at];
    while (run !== undefined && offset >= runStart + run.pages * PAGE_BYTES) {
      runStart += run.pages * PAGE_BYTES;
      at += 1;
      run = runs[at];
    }
    const block = run === undefined ? undefined : blocks[run.block];
    if (run === undefined || block === undefined) {
      throw new Error('the memory file has pages that belong nowhere');
    }
    const into = offset - runStart;
    return { address: block.address + run.firstPage * PAGE_BYTES + into, bytes: run.pages * PAGE_BYTES - into };
  };
}

async function readPart(file: FileHandle, into: Buffer, position: number): Promise<Buffer> {
  for (let done = 0; done < into.length;) {
    const { bytesRead } = await file.read(into, done, into.length - done, position + done);
    if (bytesRead === 0) {
      throw new Unusable('the memory file is shorter than was captured');
    }
    done += bytesRead;
  }
  return into;
}

/** Of files of /proc, which answer at once: a thread for each read would only cost. */
function readWhole(fd: number, into: Buffer, position: number, what: string): void {
  for (let done = 0; done < into.length;) {
    const bytesRead = readSync(fd, into, done, into.length - done, position + done);
    if (bytesRead === 0) {
      throw new Error(`${what} ended early`);
    }
    done += bytesRead;
  }
}

/** Positions are numbers here: `fs.write` silently writes at the file's own position when it is given a BigInt. */
function writeWhole(fd: number, bytes: Buffer, position: number): void {
  for (let done = 0; done < bytes.length;) {
    done += writeSync(fd, bytes, done, bytes.length - done, position + done);
  }
}
