// The tar format (ustar): writes entries with fixed owners and times, and finds the end of an
// archive's entries. Neither compresses nor extracts.
import type { FileHandle } from 'node:fs/promises';
import { open } from 'node:fs/promises';

const TAR_BLOCK_BYTES = 512;

interface TarOwner {
  uid: number;
  gid: number;
}

/** An archive entry. Paths are relative, without a trailing slash. */
export type TarEntry = { path: string; owner?: TarOwner } & (
  | { type: 'folder'; mode: number }
  | { type: 'file'; mode: number; content: Buffer | { file: string } }
  | { type: 'link'; target: string }
);

const TYPE_FLAG = { file: '0', link: '2', folder: '5' } as const;

function header(entry: TarEntry, sizeBytes: number, timeSeconds: number): Buffer {
  const block = Buffer.alloc(TAR_BLOCK_BYTES);
  const text = (value: string, offset: number, length: number): void => {
    if (Buffer.byteLength(value) > length) throw new Error(`${entry.path} does not fit the tar format`);
    block.write(value, offset);
  };
  const octal = (value: number, offset: number, length: number): void =>
    text(`${value.toString(8).padStart(length - 1, '0')}\0`, offset, length);
  const path = entry.type === 'folder' ? `${entry.path}/` : entry.path;
  const [prefix, name] = splitPath(path);
  text(name, 0, 100);
  octal(entry.type === 'link' ? 0o777 : entry.mode, 100, 8);
  octal(entry.owner?.uid ?? 0, 108, 8);
  octal(entry.owner?.gid ?? 0, 116, 8);
  octal(sizeBytes, 124, 12);
  octal(timeSeconds, 136, 12);
  text(' '.repeat(8), 148, 8);
  text(TYPE_FLAG[entry.type], 156, 1);
  if (entry.type === 'link') text(entry.target, 157, 100);
  text('ustar\u000000', 257, 8);
  text(prefix, 345, 155);
  let sum = 0;
  for (const byte of block) sum += byte;
  text(`${sum.toString(8).padStart(6, '0')}\0 `, 148, 8);
  return block;
}

/** A path longer than 100 bytes is split at a slash. */
function splitPath(path: string): [prefix: string, name: string] {
  if (Buffer.byteLength(path) <= 100) return ['', path];
  for (let slash = path.lastIndexOf('/', 155); slash > 0; slash = path.lastIndexOf('/', slash - 1)) {
    const name = path.slice(slash + 1);
    if (name !== '' && Buffer.byteLength(name) <= 100) return [path.slice(0, slash), name];
    if (Buffer.byteLength(name) > 100) break;
  }
  throw new Error(`${path} does not fit the tar format`);
}

async function* fileContent(path: string, handle: FileHandle, sizeBytes: number): AsyncGenerator<Buffer> {
  let left = sizeBytes;
  while (left > 0) {
    const { buffer, bytesRead } = await handle.read(Buffer.allocUnsafe(Math.min(left, 1 << 20)));
    if (bytesRead === 0) throw new Error(`${path} became shorter while it was read`);
    left -= bytesRead;
    yield buffer.subarray(0, bytesRead);
  }
}

/** The entries as bytes, without the end mark. All have the same time. */
export async function* tarEntries(entries: Iterable<TarEntry>, timeSeconds: number): AsyncGenerator<Buffer> {
  for (const entry of entries) {
    if (entry.type !== 'file') {
      yield header(entry, 0, timeSeconds);
      continue;
    }
    let sizeBytes: number;
    if (Buffer.isBuffer(entry.content)) {
      sizeBytes = entry.content.length;
      yield header(entry, sizeBytes, timeSeconds);
      yield entry.content;
    } else {
      const handle = await open(entry.content.file);
      try {
        sizeBytes = (await handle.stat()).size;
        yield header(entry, sizeBytes, timeSeconds);
        yield* fileContent(entry.content.file, handle, sizeBytes);
      } finally {
        await handle.close();
      }
    }
    const rest = sizeBytes % TAR_BLOCK_BYTES;
    if (rest > 0) yield Buffer.alloc(TAR_BLOCK_BYTES - rest);
  }
}

export const TAR_END = Buffer.alloc(2 * TAR_BLOCK_BYTES);

/**
 * Reads an archive's headers: the size of its entries before the end mark, and its folders (without
 * `./`).
 */
export async function scanTar(path: string): Promise<{ contentBytes: number; folders: Set<string> }> {
  const folders = new Set<string>();
  const handle = await open(path);
  try {
    const block = Buffer.alloc(TAR_BLOCK_BYTES);
    let position = 0;
    for (;;) {
      const { bytesRead } = await handle.read(block, 0, TAR_BLOCK_BYTES, position);
      if (bytesRead < TAR_BLOCK_BYTES) throw new Error(`${path} has no end marker: the tar archive is incomplete`);
      if (block[0] === 0) return { contentBytes: position, folders };
      const field = (offset: number, length: number): string => {
        const text = block.toString('utf8', offset, offset + length);
        const end = text.indexOf('\0');
        return end === -1 ? text : text.slice(0, end);
      };
      if (field(257, 5) !== 'ustar') throw new Error(`${path} is not a tar archive at byte ${position}`);
      const sizeText = field(124, 12).trim();
      if (!/^[0-7]+$/.test(sizeText)) throw new Error(`${path} has an entry of unreadable size at byte ${position}`);
      if (field(156, 1) === '5') {
        const prefix = field(345, 155);
        const name = prefix === '' ? field(0, 100) : `${prefix}/${field(0, 100)}`;
        folders.add(name.replace(/^\.\//, '').replace(/\/$/, ''));
      }
      position += TAR_BLOCK_BYTES + Math.ceil(Number.parseInt(sizeText, 8) / TAR_BLOCK_BYTES) * TAR_BLOCK_BYTES;
    }
  } finally {
    await handle.close();
  }
}
