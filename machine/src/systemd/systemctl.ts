// The service manager of this computer, by its programs.
import { execFile } from 'node:child_process';
import { access } from 'node:fs/promises';
import { promisify } from 'node:util';
import { OperatorFailure } from '../output/failure.ts';

const run = promisify(execFile);
/** systemd's own mark; see sd_booted(3). */
const BOOTED = '/run/systemd/system';
const QUERY_DEADLINE_MS = 10_000;

export async function runsSystemd(): Promise<boolean> {
  return await access(BOOTED).then(
    () => true,
    () => false,
  );
}

/** Resolves when the job is done: for a start, when the service is ready. */
export async function systemctl(words: readonly string[], signal: AbortSignal): Promise<void> {
  try {
    await run('systemctl', words, { signal });
  } catch (error) {
    const { message, stderr } = error as Error & { stderr?: string };
    throw new OperatorFailure(`systemctl ${words.join(' ')} failed: ${stderr?.trim() || message}`, { cause: error });
  }
}

/** Last lines of a unit in the journal. */
export async function lastMessages(unit: string): Promise<string> {
  const words = ['--unit', unit, '--lines', '15', '--output', 'cat', '--no-pager'];
  return (await run('journalctl', words, { timeout: QUERY_DEADLINE_MS })).stdout.trim();
}

/** True while this computer shuts down or reboots. */
export async function isStopping(): Promise<boolean> {
  if (!(await runsSystemd())) return false;
  // The exit code is 0 only for `running`.
  const state = await run('systemctl', ['is-system-running'], { timeout: QUERY_DEADLINE_MS }).catch(
    (error: { stdout?: string }) => error,
  );
  return state.stdout?.trim() === 'stopping';
}

export async function systemdVersion(): Promise<number> {
  const { stdout } = await run('systemctl', ['--version'], { timeout: QUERY_DEADLINE_MS });
  return Number(/^systemd (\d+)/.exec(stdout)?.[1] ?? 0);
}

/**
 * Reports to the service manager that the service responds. By the pid of this process: its control
 * group may be outside of the unit.
 */
export async function notifyReady(environment: Readonly<NodeJS.ProcessEnv>): Promise<void> {
  await run('systemd-notify', ['--ready', `--pid=${process.pid}`], { env: { ...environment } });
}

/** True in a service of Type=notify. */
export function isManaged(environment: Readonly<NodeJS.ProcessEnv>): boolean {
  return environment['NOTIFY_SOCKET'] !== undefined;
}
