// Digest of a sparse file in the time its data takes: ten gigabytes with one of data cost one.
import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { stat } from 'node:fs/promises';
import { basename, dirname } from 'node:path';

const BLOCK_BYTES = 4096;
const TAR_BLOCK_BYTES = 512;

/**
 * SHA-256 over the file's size and, in order, the number and content of each 4 KiB block that is
 * not all zeros. Files that read the same have the same digest, wherever their holes are.
 */
export async function sparseSha256(path: string, signal: AbortSignal): Promise<string> {
  const { size } = await stat(path);
  const hash = createHash('sha256');
  const number = Buffer.alloc(8);
  number.writeBigUInt64LE(BigInt(size));
  hash.update(number);
  const zeros = Buffer.alloc(BLOCK_BYTES);
  const take = (block: Buffer, index: number): void => {
    if (block.equals(zeros)) return;
    number.writeBigUInt64LE(BigInt(index));
    hash.update(number).update(block);
  };
  // Data may begin and end inside a block: hash a block only when no later data can belong to it.
  let partial = Buffer.alloc(BLOCK_BYTES);
  let partialIndex = -1;
  const flush = (): void => {
    if (partialIndex >= 0) take(partial, partialIndex);
    partialIndex = -1;
  };
  for await (const { offset, bytes } of dataOf(path, size, signal)) {
    let at = 0;
    while (at < bytes.length) {
      const position = offset + at;
      const index = Math.floor(position / BLOCK_BYTES);
      const inBlock = position % BLOCK_BYTES;
      const count = Math.min(BLOCK_BYTES - inBlock, bytes.length - at);
      if (index !== partialIndex) flush();
      if (count === BLOCK_BYTES) {
        take(bytes.subarray(at, at + count), index);
      } else {
        if (partialIndex === -1) partial = Buffer.alloc(BLOCK_BYTES);
        partialIndex = index;
        bytes.copy(partial, inBlock, at, at + count);
      }
      at += count;
    }
  }
  flush();
  return hash.digest('hex');
}

/**
 * The file's data with offsets. Node cannot find holes; GNU tar can, and writes a map of the data
 * followed by the data (format 1.0 of sparse members in pax archives). A file without holes is an
 * ordinary member.
 */
async function* dataOf(
  path: string,
  sizeBytes: number,
  signal: AbortSignal,
): AsyncGenerator<{ offset: number; bytes: Buffer }> {
  const args = [
    '--create',
    '--file=-',
    '--format=pax',
    '--sparse',
    '--hole-detection=seek',
    '--directory',
    dirname(path),
    '--',
    basename(path),
  ];
  const child = spawn('tar', args, { stdio: ['ignore', 'pipe', 'pipe'], signal, killSignal: 'SIGKILL' });
  let stderr = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    stderr += text;
  });
  const ended = new Promise<number | null>((resolve, reject) => {
    child.on('error', reject);
    child.on('close', resolve);
  });
  ended.catch(() => undefined); // awaited below; an abort must not count as unhandled before that
  const chunks = child.stdout[Symbol.asyncIterator]() as AsyncIterator<Buffer>;
  let buffered: Buffer = Buffer.alloc(0);
  const fill = async (atLeast: number): Promise<void> => {
    while (buffered.length < atLeast) {
      const next = await chunks.next();
      if (next.done) throw new Error(`tar ended early while reading ${path}: ${stderr.trim()}`);
      buffered = buffered.length === 0 ? next.value : Buffer.concat([buffered, next.value]);
    }
  };
  const take = async (count: number): Promise<Buffer> => {
    await fill(count);
    const bytes = buffered.subarray(0, count);
    buffered = buffered.subarray(count);
    return bytes;
  };
  try {
    const { sparse, sizeBytes: memberBytes } = await memberHeader(take);
    const ranges = sparse ? await sparseMap(take) : [{ offset: 0, length: memberBytes }];
    for (const range of ranges) {
      if (range.offset + range.length > sizeBytes) throw new Error(`tar's map of ${path} goes beyond its end`);
      let done = 0;
      while (done < range.length) {
        await fill(1);
        const bytes = await take(Math.min(buffered.length, range.length - done));
        yield { offset: range.offset + done, bytes };
        done += bytes.length;
      }
    }
    while (!(await chunks.next()).done); // padding and the archive's end
    const code = await ended;
    if (code !== 0) throw new Error(`tar could not read ${path} (exit code ${code}): ${stderr.trim()}`);
  } finally {
    child.kill('SIGKILL');
    await Promise.allSettled([ended]);
  }
}

type Take = (count: number) => Promise<Buffer>;

/** Reads up to the member's own header, whose size covers map and data. */
async function memberHeader(take: Take): Promise<{ sparse: boolean; sizeBytes: number }> {
  let sparse = false;
  let longSize: number | null = null;
  for (;;) {
    const header = Buffer.from(await take(TAR_BLOCK_BYTES));
    const size = Number.parseInt(header.toString('latin1', 124, 135), 8);
    if (header.toString('latin1', 156, 157) !== 'x') return { sparse, sizeBytes: longSize ?? size };
    const records = (await take(Math.ceil(size / TAR_BLOCK_BYTES) * TAR_BLOCK_BYTES)).toString('utf8', 0, size);
    sparse = /^\d+ GNU\.sparse\.major=1$/m.test(records);
    const found = /^\d+ size=(\d+)$/m.exec(records);
    if (found) longSize = Number(found[1]);
  }
}

/**
 * Decimal numbers on lines: the number of ranges, then offset and length of each; padded to a whole
 * block.
 */
async function sparseMap(take: Take): Promise<{ offset: number; length: number }[]> {
  let text = '';
  const numbers: number[] = [];
  const complete = (): boolean => numbers.length > 0 && numbers.length === 1 + 2 * (numbers[0] ?? 0);
  while (!complete()) {
    const lines = (text + (await take(TAR_BLOCK_BYTES)).toString('latin1')).split('\n');
    text = lines.pop() ?? '';
    for (const line of lines) {
      if (complete()) break;
      if (!/^\d+$/.test(line)) throw new Error('tar wrote a sparse map of an unknown format');
      numbers.push(Number(line));
    }
  }
  return Array.from({ length: numbers[0] ?? 0 }, (_, index) => ({
    offset: numbers[1 + 2 * index] ?? 0,
    length: numbers[2 + 2 * index] ?? 0,
  }));
}
