// Writes the pages of a memory file into a process and verifies them. Runs in a separate thread
// (pages-worker.ts); validates every number; knows nothing of QEMU.
import { createHash } from 'node:crypto';
import { writeSync } from 'node:fs';
import { open, type FileHandle } from 'node:fs/promises';
import { assertRuns } from '@berth/os/process-identity.ts';
import { hasCode } from '@berth/os/errors.ts';
import { fileCipher } from './encryption.ts';
import { decodeRuns, PAGE_BYTES, RUN_ENTRY_BYTES, type BlockRun } from './page-runs.ts';
import { CHUNK_BYTES, type PatchJob, type PatchTarget, type Stop } from './pages-job.ts';
import type { RamBlock } from '../machine/ram-blocks.ts';

/**
 * Chunks read before their destination is known. More would be ready by the time QEMU starts, but
 * allocating their memory costs as much as it saves.
 */
const CHUNKS_AHEAD = 8;

/** The memory file differs from the capture. */
export class PagesUnusable extends Error {}

/** Rejects with {@link PagesUnusable}; the pages written so far are then worthless. */
export async function patch(job: PatchJob, into: Promise<PatchTarget | null>, throwIfStopped: Stop): Promise<void> {
  const { dataBytes, runs: runCount, sha256 } = job.memory;
  const file = await open(job.path, 'r').catch((error: NodeJS.ErrnoException) => {
    throw hasCode(error, 'ENOENT') ? new PagesUnusable('the memory file is missing') : error;
  });
  let writer: MemoryPatcher | null = null;
  try {
    const tableBytes = runCount * RUN_ENTRY_BYTES;
    if ((await file.stat()).size !== dataBytes + tableBytes)
      throw new PagesUnusable('the size of the memory file differs from the captured size');

    const table = await readPart(file, Buffer.alloc(tableBytes), dataBytes);
    const decrypt = (offset: number): ((bytes: Buffer) => Buffer) =>
      job.key === null ? (bytes) => bytes : fileCipher(job.key, offset);
    const openWriter = async (): Promise<MemoryPatcher> => {
      const known = await into;
      throwIfStopped();
      if (known === null) throw new Error('there is no VM to write pages to');

      return MemoryPatcher.open(known, decrypt(dataBytes)(table), decrypt(0), dataBytes);
    };
    let isKnown = false;
    void into.then(() => (isKnown = true));
    const hash = createHash('sha256');
    const free: Buffer[] = [];
    const read = (at: number): Promise<Buffer> => {
      const buffer = free.pop() ?? Buffer.allocUnsafeSlow(CHUNK_BYTES);
      const reading = readPart(file, buffer.subarray(0, Math.max(0, Math.min(CHUNK_BYTES, dataBytes - at))), at);
      // The awaiting caller reports the failure.
      reading.catch(() => undefined);
      return reading;
    };
    const ahead: Buffer[] = [];
    let next = read(0);
    for (let at = 0; at < dataBytes; at += CHUNK_BYTES) {
      throwIfStopped();
      const chunk = await next;
      // Another thread reads the next part while this one hashes and writes.
      next = read(at + CHUNK_BYTES);
      hash.update(chunk);
      ahead.push(chunk);
      if (writer === null && (isKnown || ahead.length === CHUNKS_AHEAD)) writer = await openWriter();

      for (const part of writer === null ? [] : ahead.splice(0)) {
        writer?.write(part);
        free.push(Buffer.from(part.buffer));
      }
    }
    await next;
    if (hash.update(table).digest('hex') !== sha256)
      throw new PagesUnusable('the memory file is damaged: its SHA-256 differs');

    writer ??= await openWriter();
    ahead.forEach((part) => writer?.write(part));
  } finally {
    await Promise.all([file.close(), writer?.close()]);
  }
}

/** Writes the pages of a memory file, in file order, to their addresses. */
class MemoryPatcher {
  readonly #memory: FileHandle;
  readonly #decrypt: (bytes: Buffer) => Buffer;
  readonly #place: (offset: number) => { address: number; bytes: number };
  #written = 0;

  private constructor(
    memory: FileHandle,
    decrypt: (bytes: Buffer) => Buffer,
    runs: readonly BlockRun[],
    blocks: readonly RamBlock[],
  ) {
    this.#memory = memory;
    this.#decrypt = decrypt;
    this.#place = placeOf(runs, blocks);
  }

  static async open(
    { process, blocks }: PatchTarget,
    table: Buffer,
    decrypt: (bytes: Buffer) => Buffer,
    dataBytes: number,
  ): Promise<MemoryPatcher> {
    const sizes = blocks.map(({ sizeBytes }) => sizeBytes);
    const runs = decodeRuns(table, sizes, dataBytes);
    if (runs === null) throw new PagesUnusable('the memory file lists pages that the VM does not have');

    const memory = await open(`/proc/${process.pid}/mem`, 'r+');
    try {
      // The file stays open, so it belongs to the recorded process even if its pid is reused.
      await assertRuns(process);
      return new MemoryPatcher(memory, decrypt, runs, blocks);
    } catch (error) {
      await memory.close();
      throw error;
    }
  }

  write(part: Buffer): void {
    const pages = this.#decrypt(part);
    for (let done = 0; done < pages.length;) {
      const { address, bytes } = this.#place(this.#written);
      const length = Math.min(bytes, pages.length - done);
      writeWhole(this.#memory.fd, pages.subarray(done, done + length), address);
      done += length;
      this.#written += length;
    }
  }

  async close(): Promise<void> {
    await this.#memory.close();
  }
}

/** Maps a file offset to its address and the number of contiguous bytes. Offsets must ascend. */
function placeOf(
  runs: readonly BlockRun[],
  blocks: readonly RamBlock[],
): (offset: number) => { address: number; bytes: number } {
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
    if (run === undefined || block === undefined) throw new Error('the memory file has pages without an address');

    const into = offset - runStart;
    return { address: block.address + run.firstPage * PAGE_BYTES + into, bytes: run.pages * PAGE_BYTES - into };
  };
}

async function readPart(file: FileHandle, into: Buffer, position: number): Promise<Buffer> {
  for (let done = 0; done < into.length;) {
    const { bytesRead } = await file.read(into, done, into.length - done, position + done);
    if (bytesRead === 0) throw new PagesUnusable('the memory file is shorter than was captured');

    done += bytesRead;
  }
  return into;
}

/**
 * Positions are numbers: given a BigInt, `fs.write` silently writes at the file's current position.
 */
function writeWhole(fd: number, bytes: Buffer, position: number): void {
  for (let done = 0; done < bytes.length;) {
    const bytesWritten = writeSync(fd, bytes, done, bytes.length - done, position + done);
    // Writing into the memory of an exited process writes nothing and reports no error.
    if (bytesWritten === 0) throw new Error('the QEMU process exited while its memory was written');

    done += bytesWritten;
  }
}
