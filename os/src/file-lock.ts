// File locks that the kernel releases when their holder exits: flock(2) on an open file
// description, shared with the flock program and left locked by it.
import { spawn } from 'node:child_process';
import { open } from 'node:fs/promises';
import type { FileHandle } from 'node:fs/promises';

export interface HeldLock {
  release(): Promise<void>;
}

/** Locks a file (created if missing). Null if another open file holds the lock. */
export async function tryLock(path: string): Promise<HeldLock | null> {
  const file = await open(path, 'a', 0o600);
  try {
    if (await flock(file, ['--exclusive', '--nonblock'])) return { release: () => file.close() };
  } catch (error) {
    await file.close();
    throw error;
  }
  await file.close();
  return null;
}

/**
 * Waits for the lock. Calls `onWait` once if another open file holds it. Rejects with the signal's
 * reason.
 */
export async function waitForLock(path: string, onWait: () => void, signal: AbortSignal): Promise<HeldLock> {
  signal.throwIfAborted();
  const file = await open(path, 'a', 0o600);
  try {
    if (!(await flock(file, ['--exclusive', '--nonblock']))) {
      onWait();
      await flock(file, ['--exclusive'], signal);
    }
  } catch (error) {
    await file.close();
    signal.throwIfAborted();
    throw error;
  }
  return { release: () => file.close() };
}

/** False if another open file holds the lock (exit code 1, without waiting only). */
function flock(file: FileHandle, flags: string[], signal?: AbortSignal): Promise<boolean> {
  return new Promise((resolve, reject) => {
    const options = {
      stdio: ['ignore', 'ignore', 'inherit', file.fd] as const,
      ...(signal === undefined ? {} : { signal }),
    };
    const child = spawn('flock', [...flags, '3'], { ...options, stdio: [...options.stdio] });
    child.once('error', reject);
    child.once('exit', (code) => {
      if (code === 0 || code === 1) resolve(code === 0);
      else reject(new Error(`flock ended with ${code === null ? 'a signal' : `exit code ${code}`}`));
    });
  });
}
