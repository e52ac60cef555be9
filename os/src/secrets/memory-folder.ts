// File systems in memory: files there survive a restart of a process, but not of the host, and are
// on no disk unless the host swaps.
import { access, constants, statfs } from 'node:fs/promises';
import { nullIf } from '../errors.ts';

/** The second is for hosts without systemd. */
export const MEMORY_FOLDERS: readonly string[] = ['/run', '/dev/shm'];
/** Types of statfs(2): tmpfs and ramfs. */
const MEMORY_FILE_SYSTEMS = new Set([0x01_02_19_94, 0x85_84_58_f6]);

/** False for a path that does not exist. */
export async function isInMemory(path: string): Promise<boolean> {
  const type = (await statfs(path).catch(nullIf('ENOENT')))?.type;
  return type !== undefined && MEMORY_FILE_SYSTEMS.has(type);
}

/** The first writable folder in memory; null if there is none. */
export async function writableMemoryFolder(folders = MEMORY_FOLDERS): Promise<string | null> {
  for (const folder of folders) if ((await isInMemory(folder)) && (await isWritable(folder))) return folder;
  return null;
}

export async function isWritable(path: string): Promise<boolean> {
  return access(path, constants.W_OK).then(
    () => true,
    () => false,
  );
}
