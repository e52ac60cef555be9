// Reads and writes GNU tar (--format=gnu). Names are bytes of any encoding and length.

const BLOCK = 512;
/** Longer names precede their entry as an entry of their own. */
const NAME_BYTES = 100;
/** Longer than any system's limit. */
const LONG_NAME_MAX_BYTES = 65_536;
const LONG_LINK_NAME = Buffer.from('././@LongLink');
const TYPE = { file: '0', link: '2', folder: '5', longName: 'L', longTarget: 'K' } as const;
const KINDS: Readonly<Record<string, ArchiveEntry['kind']>> = {
  '0': 'file',
  '\0': 'file',
  '7': 'file',
  '2': 'link',
  '5': 'folder',
};

export interface ArchiveEntry {
  name: Buffer;
  /** `other`: devices, pipes, hard links. */
  kind: 'file' | 'folder' | 'link' | 'other';
  /** Permission bits with set-user-id, set-group-id and sticky. */
  mode: number;
  /** Seconds since 1970. */
  mtime: number;
  /** Bytes of content; 0 unless a file. */
  size: number;
  /** Target of a symlink. */
  target: Buffer;
}

export class ArchiveBroken extends Error {
  override readonly name = 'ArchiveBroken';
}

/** Header of an entry; the content follows, then {@link padding}. */
export function entryHead({ name, kind, mode, mtime, size, target }: ArchiveEntry): Buffer {
  const type = kind === 'other' ? TYPE.file : TYPE[kind];
  const shown = kind === 'folder' ? Buffer.concat([name, Buffer.from('/')]) : name;
  return Buffer.concat([
    ...(shown.length > NAME_BYTES ? [longHead(TYPE.longName, shown)] : []),
    ...(target.length > NAME_BYTES ? [longHead(TYPE.longTarget, target)] : []),
    head({ name: shown, type, mode, mtime, size: kind === 'file' ? size : 0, target }),
  ]);
}

/** Fills the last block after `size` bytes of content. */
export function padding(size: number): Buffer {
  return Buffer.alloc((BLOCK - (size % BLOCK)) % BLOCK);
}

export const ARCHIVE_END: Buffer = Buffer.alloc(2 * BLOCK);

function longHead(type: string, text: Buffer): Buffer {
  const size = text.length + 1;
  return Buffer.concat([
    head({ name: LONG_LINK_NAME, type, mode: 0, mtime: 0, size, target: Buffer.alloc(0) }),
    text,
    Buffer.alloc(1),
    padding(size),
  ]);
}

function head(fields: {
  name: Buffer;
  type: string;
  mode: number;
  mtime: number;
  size: number;
  target: Buffer;
}): Buffer {
  const block = Buffer.alloc(BLOCK);
  fields.name.copy(block, 0, 0, NAME_BYTES);
  writeNumber(block, 100, 8, fields.mode);
  writeNumber(block, 108, 8, 0);
  writeNumber(block, 116, 8, 0);
  writeNumber(block, 124, 12, fields.size);
  writeNumber(block, 136, 12, Math.max(0, fields.mtime));
  block.write(fields.type, 156, 'latin1');
  fields.target.copy(block, 157, 0, NAME_BYTES);
  block.write('ustar  \0', 257, 'latin1');
  block.write(`${sumOf(block).toString(8).padStart(6, '0')}\0 `, 148, 'latin1');
  return block;
}

/** Octal if it fits, otherwise GNU's binary form with the first bit set. */
function writeNumber(block: Buffer, at: number, length: number, value: number): void {
  const octal = Math.floor(value).toString(8);
  if (octal.length < length) {
    block.write(`${octal.padStart(length - 1, '0')}\0`, at, 'latin1');
    return;
  }
  block.writeUIntBE(Math.floor(value), at + length - 6, 6);
  block[at] = 0x80;
}

function readNumber(block: Buffer, at: number, length: number): number {
  const first = block[at] ?? 0;
  if ((first & 0x80) !== 0) {
    const high = block.subarray(at, at + length - 6);
    // Negative: a time before 1970, read as 1970.
    if (first === 0xff) return 0;
    if (high.some((byte, index) => byte !== (index === 0 ? 0x80 : 0))) throw new ArchiveBroken('number too large');
    return block.readUIntBE(at + length - 6, 6);
  }
  const text = block
    .toString('latin1', at, at + length)
    .replace(/[\0 ]+$/, '')
    .trimStart();
  if (!/^[0-7]*$/.test(text)) throw new ArchiveBroken('invalid number');
  return text === '' ? 0 : Number.parseInt(text, 8);
}

/** Sum of all bytes, with the checksum field counted as spaces. */
function sumOf(block: Buffer): number {
  let sum = 8 * 32;
  for (const [at, byte] of block.entries()) if (at < 148 || at >= 156) sum += byte;
  return sum;
}

export class ArchiveReader {
  readonly #source: AsyncIterator<Buffer>;
  #rest: Buffer = Buffer.alloc(0);
  /** Unread bytes of the current entry, with padding. */
  #unread = 0;
  /** Bytes received so far. */
  read = 0;

  constructor(source: AsyncIterable<Buffer>) {
    this.#source = source[Symbol.asyncIterator]();
  }

  /** Returns the next entry, or null at the end of the stream. Throws ArchiveBroken. */
  async next(): Promise<ArchiveEntry | null> {
    let [name, target]: (Buffer | null)[] = [null, null];
    for (;;) {
      for await (const _skipped of this.#take(this.#unread));
      this.#unread = 0;
      const block = await this.#bytes(BLOCK);
      if (block.every((byte) => byte === 0)) {
        // Drain trailing blocks, so that the sender does not block.
        for (;;) if ((await this.#chunk()) === null) return null;
      }
      if (sumOf(block) !== readNumber(block, 148, 8)) throw new ArchiveBroken('wrong checksum');
      const type = block.toString('latin1', 156, 157);
      const size = readNumber(block, 124, 12);
      if (type === TYPE.longName || type === TYPE.longTarget) {
        if (size > LONG_NAME_MAX_BYTES) throw new ArchiveBroken('name too long');
        const text = untilZero(await this.#bytes(size));
        await this.#bytes(padding(size).length);
        if (type === TYPE.longName) name = text;
        else target = text;
        continue;
      }
      const kind = KINDS[type] ?? 'other';
      // Skip the content of other entries.
      this.#unread = kind === 'folder' || kind === 'link' ? 0 : size + padding(size).length;
      return {
        name: name ?? untilZero(block.subarray(0, NAME_BYTES)),
        kind,
        mode: readNumber(block, 100, 8) & 0o7777,
        mtime: readNumber(block, 136, 12),
        size: kind === 'file' ? size : 0,
        target: target ?? untilZero(block.subarray(157, 157 + NAME_BYTES)),
      };
    }
  }

  /** Content of the current file entry. Read at most once, completely, before the next entry. */
  async *content(size: number): AsyncGenerator<Buffer> {
    this.#unread -= size;
    yield* this.#take(size);
  }

  async *#take(bytes: number): AsyncGenerator<Buffer> {
    for (let left = bytes; left > 0;) {
      const chunk = this.#rest.length > 0 ? this.#rest : await this.#chunk();
      if (chunk === null) throw new ArchiveBroken('unexpected end');
      this.#rest = chunk.subarray(left);
      const part = chunk.subarray(0, left);
      left -= part.length;
      yield part;
    }
  }

  async #bytes(count: number): Promise<Buffer> {
    const parts: Buffer[] = [];
    for await (const part of this.#take(count)) parts.push(part);
    return Buffer.concat(parts);
  }

  async #chunk(): Promise<Buffer | null> {
    const { done, value } = await this.#source.next();
    if (done === true) return null;
    this.read += value.length;
    return value;
  }
}

function untilZero(field: Buffer): Buffer {
  const end = field.indexOf(0);
  return Buffer.from(end === -1 ? field : field.subarray(0, end));
}
