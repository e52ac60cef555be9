// A file or folder of this machine as an archive, as it is read. Names are bytes: a folder may have
// ones that are no UTF-8.
import { constants } from 'node:fs';
import { lstat, open, readdir, readlink, stat } from 'node:fs/promises';
import { ARCHIVE_END, entryHead, padding, type ArchiveEntry } from './archive.ts';

const READ_BYTES = 262_144;
const SLASH = Buffer.from('/');

interface PackOptions {
  /** Name of the root in the archive. */
  root: string;
  /** Whether a source that is a symlink is what it leads to. Below it symlinks are kept. */
  follow: boolean;
  /** Told of what could not be packed, or not as it is; the rest is packed all the same. */
  skipped: (path: Buffer, why: string) => void;
  /** Told of each piece of content. */
  passed: (bytes: number) => void;
}

/** Throws what the system says of the source itself. */
export async function* pack(source: string, options: PackOptions): AsyncGenerator<Buffer> {
  yield* packOne(Buffer.from(source), Buffer.from(options.root), options, true);
  yield ARCHIVE_END;
}

async function* packOne(path: Buffer, name: Buffer, options: PackOptions, isRoot: boolean): AsyncGenerator<Buffer> {
  const found = await (isRoot && options.follow ? stat(path) : lstat(path));
  const entry: ArchiveEntry = {
    name,
    kind: 'other',
    mode: found.mode & 0o7777,
    mtime: Math.floor(found.mtimeMs / 1_000),
    size: 0,
    target: Buffer.alloc(0),
  };
  if (found.isDirectory()) {
    // Listed first: one that cannot be listed is left out, or fails, as a whole.
    const children = (await readdir(path, { encoding: 'buffer' })).sort((one, other) => one.compare(other));
    // The root gets what its name is worth at its end; until then it must take others.
    yield entryHead({ ...entry, kind: 'folder', mode: isRoot ? entry.mode | 0o700 : entry.mode });
    for (const child of children) {
      const at = Buffer.concat([path, SLASH, child]);
      try {
        yield* packOne(at, Buffer.concat([name, SLASH, child]), options, false);
      } catch (error) {
        const { code, message } = error as NodeJS.ErrnoException;
        if (code === undefined || error instanceof Unfinished) throw error;
        options.skipped(at, message);
      }
    }
  } else if (found.isSymbolicLink()) {
    yield entryHead({ ...entry, kind: 'link', target: await readlink(path, { encoding: 'buffer' }) });
  } else if (found.isFile()) {
    yield* packFile(path, entry, options);
  } else {
    if (isRoot) throw new Error('it is neither a file, nor a folder, nor a symlink');
    options.skipped(path, 'it is neither a file, nor a folder, nor a symlink');
  }
}

/** Thrown where an entry has begun and cannot be brought to its end. */
class Unfinished extends Error {
  override readonly name = 'Unfinished';
}

async function* packFile(path: Buffer, entry: ArchiveEntry, { skipped, passed }: PackOptions): AsyncGenerator<Buffer> {
  const file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK);
  try {
    const { size } = await file.stat();
    yield entryHead({ ...entry, kind: 'file', size });
    let left = size;
    while (left > 0) {
      let read: { bytesRead: number; buffer: Buffer };
      try {
        read = await file.read(Buffer.allocUnsafe(Math.min(READ_BYTES, left)));
      } catch (error) {
        throw new Unfinished(`${path.toString()} cannot be read: ${(error as Error).message}`, { cause: error });
      }
      if (read.bytesRead === 0) {
        // It was cut off while it was read; its length has been said.
        skipped(path, `it became ${left} bytes shorter while it was read; zeros stand in their place`);
        for (; left > 0; left -= Math.min(READ_BYTES, left)) yield Buffer.alloc(Math.min(READ_BYTES, left));
        break;
      }
      left -= read.bytesRead;
      passed(read.bytesRead);
      yield read.buffer.subarray(0, read.bytesRead);
    }
    yield padding(size);
  } finally {
    await file.close();
  }
}
