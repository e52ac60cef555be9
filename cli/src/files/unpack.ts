// Unpacks an untrusted archive: first into a private folder, then moved to the target as a whole.
// The sender controls names and contents, never the location.
import { constants, type Stats } from 'node:fs';
import { chmod, lstat, mkdir, open, readdir, rename, symlink, utimes } from 'node:fs/promises';
import type { ArchiveEntry, ArchiveReader } from './archive.ts';
import { withStage } from './stage.ts';

const SLASH = Buffer.from('/');
const ROOT = Buffer.from('r');

/** The archive violates a rule that no honest sender breaks. */
export class Refused extends Error {
  override readonly name = 'Refused';
}

interface UnpackOptions {
  /** Called with the path below the root of each skipped entry. */
  skipped: (path: Buffer, why: string) => void;
  /** Called with the bytes received so far. */
  passed: (bytes: number) => void;
  signal: AbortSignal;
}

interface Folder {
  /** Path below the root; empty: the root. */
  path: Buffer;
  mode: number;
  mtime: number;
}

/** An unpacked archive, not yet at its target. */
export class Unpacked {
  readonly kind: 'file' | 'folder';
  readonly #stage: string;
  readonly #folders: readonly Folder[];
  readonly #options: UnpackOptions;

  constructor(kind: 'file' | 'folder', stage: string, folders: readonly Folder[], options: UnpackOptions) {
    this.kind = kind;
    this.#stage = stage;
    this.#folders = folders;
    this.#options = options;
  }

  /**
   * Moves everything to the target. A file replaces an existing file; a folder merges into an
   * existing folder.
   */
  async place(target: string): Promise<void> {
    const merged = new Set<string>();
    await this.#move(
      Buffer.concat([Buffer.from(this.#stage), SLASH, ROOT]),
      Buffer.from(target),
      Buffer.alloc(0),
      merged,
    );
    if (this.kind === 'file') return;
    // Last, and innermost first: a read-only folder accepts no entries, and entries change its
    // mtime.
    for (const { path, mode, mtime } of this.#folders.toReversed()) {
      if (merged.has(path.toString('latin1'))) continue;
      const at = path.length === 0 ? Buffer.from(target) : Buffer.concat([Buffer.from(target), SLASH, path]);
      await chmod(at, mode & 0o777);
      await utimes(at, mtime, mtime);
    }
  }

  async #move(from: Buffer, to: Buffer, path: Buffer, merged: Set<string>): Promise<void> {
    const [ours, theirs] = [await lstat(from), await lstatOrNull(to)];
    if (ours.isDirectory() && theirs?.isDirectory() === true) {
      merged.add(path.toString('latin1'));
      for (const name of await readdir(from, { encoding: 'buffer' })) {
        const below = path.length === 0 ? name : Buffer.concat([path, SLASH, name]);
        await this.#move(Buffer.concat([from, SLASH, name]), Buffer.concat([to, SLASH, name]), below, merged);
      }
    } else if (theirs !== null && ours.isDirectory() !== theirs.isDirectory()) {
      // Skip the metadata of folders below, which were not moved.
      for (const { path: folder } of this.#folders) {
        if (folder.equals(path) || folder.subarray(0, path.length + 1).equals(Buffer.concat([path, SLASH])))
          merged.add(folder.toString('latin1'));
      }
      this.#options.skipped(path, ours.isDirectory() ? 'the target is not a folder' : 'the target is a folder');
    } else {
      await rename(from, to);
    }
  }
}

/**
 * Unpacks an archive and calls `place`. Always removes its private folder. Resolves with false for
 * an empty archive. @param beside existing folder on the file system of the target
 */
export async function unpack(
  reader: ArchiveReader,
  beside: string,
  options: UnpackOptions,
  place: (unpacked: Unpacked) => Promise<void>,
): Promise<boolean> {
  return await withStage(beside, async (stage) => {
    const unpacking = new Unpacking(stage, reader, options);
    for (let entry = await reader.next(); entry !== null; entry = await reader.next()) {
      options.signal.throwIfAborted();
      await unpacking.take(entry);
      options.passed(reader.read);
    }
    const unpacked = await unpacking.finish();
    if (unpacked !== null) await place(unpacked);
    return unpacked !== null;
  });
}

class Unpacking {
  readonly #stage: Buffer;
  readonly #reader: ArchiveReader;
  readonly #options: UnpackOptions;
  /** Name of the root entry, the prefix of all names. */
  #root: Buffer | null = null;
  #kind: 'file' | 'folder' | null = null;
  readonly #folders: Folder[] = [];
  readonly #made = new Set<string>();
  /** Created last, so that no entry is written through a symlink. */
  readonly #links: { path: Buffer; target: Buffer }[] = [];

  constructor(stage: string, reader: ArchiveReader, options: UnpackOptions) {
    this.#stage = Buffer.from(stage);
    this.#reader = reader;
    this.#options = options;
  }

  async take(entry: ArchiveEntry): Promise<void> {
    const path = this.#pathOf(entry);
    if (path.length > 0 && !this.#made.has(folderOf(path).toString('latin1')))
      throw new Refused(`invalid archive: ${path.toString()} has no parent folder`);

    try {
      await this.#create(path, entry);
    } catch (error) {
      // Case-insensitive file systems and those with a restricted character set.
      const { code = '' } = error as NodeJS.ErrnoException;
      if (path.length === 0 || !['EEXIST', 'EILSEQ', 'EINVAL', 'ENAMETOOLONG'].includes(code)) throw error;
      this.#options.skipped(path, (error as Error).message.replace(/, .*/s, ''));
    }
  }

  /** Resolves with null for an empty archive. */
  async finish(): Promise<Unpacked | null> {
    if (this.#kind === null) return null;
    for (const { path, target } of this.#links) await symlink(target, this.#at(path));
    return new Unpacked(this.#kind, this.#stage.toString(), this.#folders, this.#options);
  }

  async #create(path: Buffer, { kind, mode, mtime, size, target }: ArchiveEntry): Promise<void> {
    if (path.length === 0) {
      if (kind === 'link') throw new Refused('the source is a symlink; use -L to copy its target');
      if (kind === 'other') throw new Refused('not a file or folder');
      this.#kind = kind;
    }
    if (kind === 'folder') {
      await mkdir(this.#at(path), 0o700);
      this.#made.add(path.toString('latin1'));
      this.#folders.push({ path, mode, mtime });
    } else if (kind === 'file') {
      await this.#writeFile(this.#at(path), size, mode, mtime);
    } else if (kind === 'link' && escapesRoot(path, target)) {
      this.#options.skipped(path, `symlink points outside the copied folder: ${target.toString()}`);
    } else if (kind === 'link') {
      this.#links.push({ path, target });
    } else {
      this.#options.skipped(path, 'not a file, folder or symlink');
    }
  }

  async #writeFile(at: Buffer, size: number, mode: number, mtime: number): Promise<void> {
    const file = await open(
      at,
      constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW,
      0o600,
    );
    try {
      for await (const chunk of this.#reader.content(size)) {
        this.#options.signal.throwIfAborted();
        await file.writeFile(chunk);
        this.#options.passed(this.#reader.read);
      }
      // Drops set-user-id and set-group-id.
      await file.chmod(mode & 0o777);
      await file.utimes(mtime, mtime);
    } finally {
      await file.close();
    }
  }

  /** Returns the path below the root; empty for the root, which is the first entry. */
  #pathOf({ name }: ArchiveEntry): Buffer {
    const parts = split(name).filter((part) => part.length > 0 && !part.equals(Buffer.from('.')));
    if (parts.some((part) => part.equals(Buffer.from('..'))))
      throw new Refused(`invalid archive: name with '..': ${name.toString()}`);
    const whole = joined(parts);
    if (this.#root === null) {
      this.#root = whole;
      return Buffer.alloc(0);
    }
    const prefix = this.#root.length === 0 ? this.#root : Buffer.concat([this.#root, SLASH]);
    if (whole.equals(this.#root) || !whole.subarray(0, prefix.length).equals(prefix))
      throw new Refused(`invalid archive: unexpected name ${name.toString()}`);

    return whole.subarray(prefix.length);
  }

  #at(path: Buffer): Buffer {
    return Buffer.concat([this.#stage, SLASH, ROOT, ...(path.length === 0 ? [] : [SLASH, path])]);
  }
}

/**
 * Reports whether a symlink can point outside the tree. `..` is allowed only at the start, as often
 * as there are folders above. After a name, which can be a symlink, the result of `..` is unknown.
 */
function escapesRoot(path: Buffer, target: Buffer): boolean {
  if (target.length === 0 || target[0] === SLASH[0]) return true;
  const parts = split(target).filter((part) => part.length > 0 && !part.equals(Buffer.from('.')));
  const names = parts.findIndex((part) => !part.equals(Buffer.from('..')));
  const ups = names === -1 ? parts.length : names;
  return ups > split(path).length - 1 || parts.slice(ups).some((part) => part.equals(Buffer.from('..')));
}

function folderOf(path: Buffer): Buffer {
  return path.subarray(0, Math.max(0, path.lastIndexOf('/')));
}

function split(path: Buffer): Buffer[] {
  const parts: Buffer[] = [];
  let from = 0;
  for (let at = path.indexOf('/'); at !== -1; at = path.indexOf('/', from)) {
    parts.push(path.subarray(from, at));
    from = at + 1;
  }
  parts.push(path.subarray(from));
  return parts;
}

function joined(parts: readonly Buffer[]): Buffer {
  return Buffer.concat(parts.flatMap((part, at) => (at === 0 ? [part] : [SLASH, part])));
}

async function lstatOrNull(path: Buffer): Promise<Stats | null> {
  try {
    return await lstat(path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
    throw error;
  }
}
