// The root disk: a sparse ext4 file system made from tar entries by the guest distribution's
// mke2fs, without mounting.
import { createReadStream } from 'node:fs';
import { open } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { Readable } from 'node:stream';
import { runInsideRoot } from './inside-root.ts';
import type { TarEntry } from '@berth/os/tar.ts';
import { TAR_END, tarEntries } from '@berth/os/tar.ts';
import type { Tools } from './tools-stage.ts';

/** Same for every image: no VM has two such disks, and a random UUID would make builds differ. */
const FILE_SYSTEM_UUID = 'be12c0de-0000-4000-8000-000000000001';

const ROOT_LABEL = 'berth-root';

interface Ext4Source {
  /** Archive of the installed root, and the size of its entries in bytes. */
  rootTar: string;
  rootTarBytes: number;
  /** Overrides files of the root with the same path. */
  overlay: readonly TarEntry[];
  diskGib: number;
  timeSeconds: number;
}

/** Writes the file system to `path`; unused parts are holes. */
export async function makeExt4(path: string, source: Ext4Source, tools: Tools, signal: AbortSignal): Promise<void> {
  const bytes = async function* (): AsyncGenerator<Buffer> {
    yield* createReadStream(source.rootTar, { end: source.rootTarBytes - 1, highWaterMark: 1 << 20 });
    yield* tarEntries(source.overlay, source.timeSeconds);
    yield TAR_END;
  };
  const time = String(source.timeSeconds);
  const extended = [
    `hash_seed=${FILE_SYSTEM_UUID}`,
    'root_owner=0:0',
    // The new file reads as zeros: nothing to zero now, nor later in a running guest.
    'assume_storage_prezeroed=1',
    'lazy_itable_init=0',
    'lazy_journal_init=0',
  ].join(',');
  const output = await open(path, 'wx', 0o644);
  try {
    await output.truncate(source.diskGib * 2 ** 30);
    const command = [
      'mke2fs',
      '-q',
      '-F',
      '-t',
      'ext4',
      '-b',
      '4096',
      '-m',
      '1',
      '-L',
      ROOT_LABEL,
      '-U',
      FILE_SYSTEM_UUID,
    ];
    await runInsideRoot(tools.root, [...command, '-E', extended, '-d', '-', join('/mnt', basename(path))], {
      signal,
      readOnlyRoot: true,
      writable: { '/mnt': dirname(path) },
      env: { SOURCE_DATE_EPOCH: time, E2FSPROGS_FAKE_TIME: time, MKE2FS_SKIP_PROGRESS: '1' },
      input: Readable.from(bytes(), { objectMode: false, highWaterMark: 1 << 20 }),
    });
    await output.sync();
  } finally {
    await output.close();
  }
}
