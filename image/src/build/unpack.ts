// Unpacks package files into a folder without running their scripts, and reads their build times.
import { open } from 'node:fs/promises';
import { runCommand } from '@berth/os/command.ts';

/** Unpacks in the given order; calls `onUnpacked` after each. */
export async function unpackDebs(
  paths: readonly string[],
  folder: string,
  signal: AbortSignal,
  onUnpacked: () => void,
): Promise<void> {
  for (const path of paths) {
    await runCommand('dpkg-deb', ['--extract', path, folder], { signal });
    onUnpacked();
  }
}

/**
 * Newest build time of these packages, in seconds since 1970: none of their files is newer. Used as
 * "now" in builds, so that the result depends on the packages alone.
 */
export async function newestPackageSeconds(paths: readonly string[]): Promise<number> {
  let newest = 0;
  for (const path of paths) {
    const handle = await open(path);
    try {
      // A package is an `ar` archive: 8 bytes of magic, then the first member's header, with its
      // time at byte 16.
      const { buffer } = await handle.read(Buffer.alloc(68), 0, 68, 0);
      if (buffer.toString('latin1', 0, 21) !== '!<arch>\ndebian-binary')
        throw new Error(`${path} is not a Debian package`);
      newest = Math.max(newest, Number.parseInt(buffer.toString('latin1', 24, 36), 10));
    } finally {
      await handle.close();
    }
  }
  return newest;
}
