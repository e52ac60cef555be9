// Locks that die with their holder: flock(2) on an open file. The lock belongs to the open file,
// which the helper program shares with us and leaves to us.
import { spawn } from 'node:child_process';
import { open } from 'node:fs/promises';
import type { FileHandle } from 'node:fs/promises';

export interface HeldLock {
  release(): Promise<void>;
}

/**
 * Takes the lock on a file (made when missing), or gives null when someone else has it. Nothing of
 * it survives this process.
 */
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
 * Waits for the lock; `onWait` is called once when someone else has it. Rejects when the signal
 * aborts.
 */
export async function waitForLock(path: string, onWait: () => void, signal: AbortSignal): Promise<HeldLock> {
  const file = await open(path, 'a', 0o600);
  try {
    if (!(await flock(file, ['--exclusive', '--nonblock']))) {
      onWait();
      await flock(file, ['--exclusive'], signal);
    }
  } catch (error) {
    await file.close();
    throw error;
  }
  return { release: () => file.close() };
}

/** False when the lock is someone else's (exit code 1 of a call that does not wait). */
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
