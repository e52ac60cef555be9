// Runs programs that change the host's network, one at a time per host, each with a deadline.
// Owns the lock; knows nothing of slots.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { NetworkError } from './slot.ts';

/** Longest wait for other instances' scripts, in seconds. */
const LOCK_WAIT_SECONDS = 30;
const DEADLINE_MS = 60_000;
/** Output limit of a listing: a hundred routes of slots are 16 KB. */
const OUTPUT_CHARS = 16 * 1024 * 1024;
/** Limit of a tool's stderr. */
const COMPLAINT_CHARS = 16 * 1024;

/** flock's exit status on a lock timeout. */
const LOCK_TIMEOUT_STATUS = 75;

const TOOL_ENVIRONMENT = { PATH: '/usr/sbin:/usr/bin:/sbin:/bin', LC_ALL: 'C' };

export interface Program {
  command: readonly string[];
  /** In addition to {@link TOOL_ENVIRONMENT}. */
  environment: Readonly<Record<string, string>>;
}

/**
 * Runs a program under the lock file, and resolves with its stdout. Rejects with a {@link
 * NetworkError} that names `step` and the output.
 * Every process of the program holds the lock, so the leftovers of a killed daemon finish before
 * the next daemon's program starts. A program that waits for the lock when its daemon dies never
 * starts: it would undo the next daemon's work.
 */
export function runUnderNetworkLock(step: string, program: Program, lockFile: string): Promise<string> {
  const lock = ['flock', '-w', String(LOCK_WAIT_SECONDS), '-E', String(LOCK_TIMEOUT_STATUS), lockFile];
  return runTool(step, ['setpriv', '--pdeathsig', 'KILL', ...lock, ...program.command], program.environment);
}

/** Runs one command; output, deadline and errors as in {@link runUnderNetworkLock}. */
export async function runTool(
  step: string,
  command: readonly [string, ...string[]],
  environment: Program['environment'] = {},
): Promise<string> {
  const child = spawn(command[0], command.slice(1), {
    env: { ...environment, ...TOOL_ENVIRONMENT },
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const output = { stdout: '', stderr: '' };
  for (const name of ['stdout', 'stderr'] as const) {
    child[name].setEncoding('utf8').on('data', (chunk: string) => {
      output[name] = (output[name] + chunk).slice(0, name === 'stdout' ? OUTPUT_CHARS + 1 : COMPLAINT_CHARS);
    });
  }
  let late = false;
  const deadline = setTimeout(() => {
    late = true;
    if (child.pid !== undefined) process.kill(-child.pid, 'SIGKILL');
  }, DEADLINE_MS);
  try {
    const [code, signal] = (await once(child, 'close')) as [number | null, NodeJS.Signals | null];
    if (code === 0 && output.stdout.length > OUTPUT_CHARS)
      throw new NetworkError(`${step}: output of more than ${OUTPUT_CHARS} characters`);
    if (code === 0) return output.stdout;
    const seen = output.stderr.trim() || (signal ? `ended by ${signal}` : `exit status ${code}`);
    if (late) throw new NetworkError(`${step}: not finished within ${DEADLINE_MS / 1000} s (${seen})`);
    if (code === LOCK_TIMEOUT_STATUS)
      throw new NetworkError(`${step}: another instance held the network lock for ${LOCK_WAIT_SECONDS} s`);
    throw new NetworkError(`${step}: ${seen}`);
  } catch (error) {
    if (error instanceof NetworkError) throw error;
    throw new NetworkError(`${step}: ${(error as Error).message}`, { cause: error });
  } finally {
    clearTimeout(deadline);
  }
}
