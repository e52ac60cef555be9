// The tar format as GNU tar writes and reads it (--format=gnu): names are bytes, whatever encoding
// they are in, of any length. Owns the format alone; what is made of an entry is pack.ts's and
// unpack.ts's.

const BLOCK = 512;
/** Longer names are in an entry of their own before the one that they are of. */
const NAME_BYTES = 100;
/** No system takes longer ones. */
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
  /** As it stands in the archive. */
  name: Buffer;
  /** `other`: a device, a pipe, a hard link and the like. */
  kind: 'file' | 'folder' | 'link' | 'other';
  /** Permission bits, those of set-user-id and the like among them. */
  mode: number;
  /** Whole seconds since 1970. */
  mtime: number;
  /** Bytes of a file's content. */
  size: number;
  /** What a symlink leads to. */
  target: Buffer;
}

/** What is wrong with an archive. */
export class ArchiveBroken extends Error {
  override readonly name = 'ArchiveBroken';
}

/** The head of an entry; its content follows, then {@link padding}. */
export function entryHead({ name, kind, mode, mtime, size, target }: ArchiveEntry): Buffer {
  const type = kind === 'other' ? TYPE.file : TYPE[kind];
  const shown = kind === 'folder' ? Buffer.concat([name, Buffer.from('/')]) : name;
  return Buffer.concat([
    ...(shown.length > NAME_BYTES ? [longHead(TYPE.longName, shown)] : []),
    ...(target.length > NAME_BYTES ? [longHead(TYPE.longTarget, target)] : []),
    head({ name: shown, type, mode, mtime, size: kind === 'file' ? size : 0, target }),
  ]);
}

/** What fills the last block of a content of so many bytes. */
export function padding(size: number): Buffer {
  return Buffer.alloc((BLOCK - (size % BLOCK)) % BLOCK);
}

/** The end of an archive. */
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

/** Octal where there is room, otherwise as GNU does: binary, with the first bit set. */
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
    // Below zero are times before 1970 alone; they become 1970.
    if (first === 0xff) return 0;
    if (high.some((byte, index) => byte !== (index === 0 ? 0x80 : 0)))
      throw new ArchiveBroken('a number in it is too large');
    return block.readUIntBE(at + length - 6, 6);
  }
  const text = block
    .toString('latin1', at, at + length)
    .replace(/[\0 ]+$/, '')
    .trimStart();
  if (!/^[0-7]*$/.test(text)) throw new ArchiveBroken('a number in it is none');
  return text === '' ? 0 : Number.parseInt(text, 8);
}

/** Of all bytes, those of the sum itself as spaces. */
function sumOf(block: Buffer): number {
  let sum = 8 * 32;
  for (const [at, byte] of block.entries()) if (at < 148 || at >= 156) sum += byte;
  return sum;
}

/** Reads an archive as it comes. */
export class ArchiveReader {
  readonly #source: AsyncIterator<Buffer>;
  #rest: Buffer = Buffer.alloc(0);
  /** Bytes of the last entry that nobody has read yet, its padding among them. */
  #unread = 0;
  /** Bytes that came so far. */
  read = 0;

  constructor(source: AsyncIterable<Buffer>) {
    this.#source = source[Symbol.asyncIterator]();
  }

  /**
   * The next entry; null at the end of the archive, when all that came behind it has been read too.
   * Throws ArchiveBroken.
   */
  async next(): Promise<ArchiveEntry | null> {
    let [name, target]: (Buffer | null)[] = [null, null];
    for (;;) {
      for await (const _skipped of this.#take(this.#unread));
      this.#unread = 0;
      const block = await this.#bytes(BLOCK);
      if (block.every((byte) => byte === 0)) {
        // Nobody is left waiting with what follows.
        for (;;) if ((await this.#chunk()) === null) return null;
      }
      if (sumOf(block) !== readNumber(block, 148, 8))
        throw new ArchiveBroken('it is no archive, or was changed on its way');
      const type = block.toString('latin1', 156, 157);
      const size = readNumber(block, 124, 12);
      if (type === TYPE.longName || type === TYPE.longTarget) {
        if (size > LONG_NAME_MAX_BYTES) throw new ArchiveBroken('a name in it is too long');
        const text = untilZero(await this.#bytes(size));
        await this.#bytes(padding(size).length);
        if (type === TYPE.longName) name = text;
        else target = text;
        continue;
      }
      const kind = KINDS[type] ?? 'other';
      // Of others the content is nothing that we know.
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

  /**
   * The content of the entry that was given last, a file: once, to its end, before the next one.
   */
  async *content(size: number): AsyncGenerator<Buffer> {
    this.#unread -= size;
    yield* this.#take(size);
  }

  async *#take(bytes: number): AsyncGenerator<Buffer> {
    for (let left = bytes; left > 0;) {
      const chunk = this.#rest.length > 0 ? this.#rest : await this.#chunk();
      if (chunk === null) throw new ArchiveBroken('it ends before its end');
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
