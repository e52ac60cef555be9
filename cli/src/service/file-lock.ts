// A lock beside a file, for read-modify-write, with a time limit.
// The lock is a folder whose only entry names the holder. A process takes it by renaming its own
// folder over it. The kernel allows that only while the folder is empty or missing. A dead holder's
// entry is removed by name, which cannot remove another's.
// Not flock(2) as in os/: macOS has no flock program, and a home may be on NFS.
import { randomBytes } from 'node:crypto';
import { access, mkdir, readdir, rename, rm, rmdir, stat, unlink, writeFile } from 'node:fs/promises';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { CliFailure } from '../output/failure.ts';

/** Longer than any holder needs: it is stopped, or its machine is down. */
const LONGEST_HELD_MS = 30_000;
const LONGEST_WAIT_MS = 40_000;
const POLL_INTERVAL_MS = 25;
const OWNER_ONLY = 0o700;
const THIS_MACHINE = hostname().replaceAll(/[^A-Za-z0-9.-]/g, '_');

export interface FileLock {
  /** False if the lock expired and another process took it. */
  isHeld: () => Promise<boolean>;
  release: () => Promise<void>;
}

/** Waits at most 40 s. Passes file system errors on. */
export async function takeLock(path: string, signal?: AbortSignal): Promise<FileLock> {
  const id = randomBytes(9).toString('hex');
  const own = `${THIS_MACHINE}~${process.pid}~${id}`;
  const deadline = Date.now() + LONGEST_WAIT_MS;
  for (;;) {
    if ((await holders(path)).length === 0 && (await place(path, own, `${path}.${id}`))) break;
    if (Date.now() > deadline) {
      throw new CliFailure(`cannot lock ${path}: held by another berth process for ${LONGEST_WAIT_MS / 1_000} s`, {
        remedy: 'try again, or remove the folder if no other berth is running',
      });
    }
    await delay(POLL_INTERVAL_MS * (0.5 + Math.random()), undefined, { signal });
  }
  const entry = join(path, own);
  return {
    isHeld: async () => await isThere(entry),
    release: async () => {
      await unlink(entry).catch(unless('ENOENT'));
      // Not empty: another process holds the lock.
      await rmdir(path).catch(unless('ENOENT', 'ENOTEMPTY', 'EEXIST'));
    },
  };
}

/** Live holders. Removes dead ones. */
async function holders(path: string): Promise<string[]> {
  const entries = await readdir(path).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return [];
    throw error;
  });
  const living: string[] = [];
  for (const entry of entries) {
    if (await isGone(path, entry)) await unlink(join(path, entry)).catch(unless('ENOENT'));
    else living.push(entry);
  }
  return living;
}

async function isGone(path: string, entry: string): Promise<boolean> {
  const [host, pid] = entry.split('~');
  if (host === THIS_MACHINE && /^\d+$/.test(pid ?? '') && !isRunning(Number(pid))) return true;
  const heldSince = await stat(join(path, entry)).catch(() => undefined);
  return heldSince !== undefined && heldSince.mtimeMs < Date.now() - LONGEST_HELD_MS;
}

/** Reports whether the rename succeeded. */
async function place(path: string, entry: string, beside: string): Promise<boolean> {
  await mkdir(beside, { mode: OWNER_ONLY });
  try {
    await writeFile(join(beside, entry), '');
    await rename(beside, path);
    return true;
  } catch (error) {
    await rm(beside, { recursive: true, force: true });
    if (['ENOTEMPTY', 'EEXIST'].includes((error as NodeJS.ErrnoException).code ?? '')) return false;
    throw error;
  }
}

function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code !== 'ESRCH';
  }
}

async function isThere(path: string): Promise<boolean> {
  return await access(path).then(
    () => true,
    () => false,
  );
}

function unless(...codes: readonly string[]): (error: NodeJS.ErrnoException) => void {
  return (error) => {
    if (!codes.includes(error.code ?? '')) throw error;
  };
}
