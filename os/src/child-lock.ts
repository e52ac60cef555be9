// The lock of a cache folder: one builder at a time on this machine. The kernel frees it when its
// holder dies, however it dies.
import { spawn } from 'node:child_process';

/**
 * Waits for the lock and gives the function that frees it.
 * @param onWaiting Called once when another process holds it.
 */
export async function takeLock(path: string, onWaiting: () => void, signal: AbortSignal): Promise<() => Promise<void>> {
  const attempt = await holdLock(path, ['--nonblock', '--conflict-exit-code', '75'], signal);
  if (attempt) return attempt;
  onWaiting();
  const release = await holdLock(path, [], signal);
  if (!release) throw new Error(`flock gave up waiting for ${path}`);
  return release;
}

/**
 * A child holds the lock until its standard input closes: that is, until it is freed or this
 * process is gone.
 */
async function holdLock(
  path: string,
  options: readonly string[],
  signal: AbortSignal,
): Promise<(() => Promise<void>) | null> {
  signal.throwIfAborted();
  const child = spawn('flock', [...options, '--no-fork', path, 'sh', '-c', 'echo held; exec cat'], {
    stdio: ['pipe', 'pipe', 'pipe'],
    // Out of the terminal's process group: an interrupt is this process's to handle, and the lock
    // is held until it has cleaned up.
    detached: true,
  });
  let stderr = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    stderr += text;
  });
  const ended = new Promise<number | null>((resolve, reject) => {
    child.on('error', reject);
    child.on('close', resolve);
  });
  const held = new Promise<'held'>((resolve) => {
    child.stdout.once('data', () => resolve('held'));
  });
  const abort = (): void => void child.kill('SIGKILL');
  signal.addEventListener('abort', abort);
  try {
    const outcome = await Promise.race([held, ended]);
    signal.throwIfAborted();
    if (outcome === 75) return null;
    if (outcome !== 'held') throw new Error(`flock ${path} failed (exit code ${outcome}): ${stderr.trim()}`);
  } finally {
    signal.removeEventListener('abort', abort);
  }
  return async () => {
    child.stdin.end();
    await ended;
  };
}
