// Streams a local file or folder as an archive. Names are bytes and may be invalid UTF-8.
import { constants } from 'node:fs';
import { lstat, open, readdir, readlink, stat } from 'node:fs/promises';
import { ARCHIVE_END, entryHead, padding, type ArchiveEntry } from './archive.ts';

const READ_BYTES = 262_144;
const SLASH = Buffer.from('/');

interface PackOptions {
  /** Name of the root entry. */
  root: string;
  /** Follow a symlink as the source. Symlinks below it are kept. */
  follow: boolean;
  /** Called for entries that were skipped or changed while being read. */
  skipped: (path: Buffer, why: string) => void;
  /** Called for each chunk of content. */
  passed: (bytes: number) => void;
}

/** Throws file system errors of the source itself. */
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
    // List first: an unreadable folder is skipped, or fails, as a whole.
    const children = (await readdir(path, { encoding: 'buffer' })).sort((one, other) => one.compare(other));
    // The root is writable while unpacking; the receiver sets its final mode.
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
    if (isRoot) throw new Error('not a file, folder or symlink');
    options.skipped(path, 'not a file, folder or symlink');
  }
}

/** An entry failed after its header was sent. */
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
        throw new Unfinished(`cannot read ${path.toString()}: ${(error as Error).message}`, { cause: error });
      }
      if (read.bytesRead === 0) {
        // The file shrank, but the header with its size was already sent.
        skipped(path, `the file shrank by ${left} bytes while it was read; the rest is filled with zeros`);
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
