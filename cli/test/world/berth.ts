// Runs `berth` as a process with its own home, without variables of the tester: no BERTH_*, XDG_*
// or NO_COLOR.
import assert from 'node:assert/strict';
import { spawn, type ChildProcessWithoutNullStreams } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

export const MAIN = join(import.meta.dirname, '../../src/main.ts');
const DEADLINE_MS = 120_000;

export interface BerthOptions {
  /** Added to `cleanEnvironment()`; may replace `HOME`. */
  env?: Readonly<Record<string, string | undefined>>;
  /** Input; default: empty. */
  stdin?: string | Buffer;
  /** Milliseconds until the run fails. */
  timeout?: number;
}

export interface Ended {
  /** null: killed by a signal. */
  code: number | null;
  stdout: string;
  stderr: string;
}

let home: string | undefined;

/** Default home of this test process. */
function ownHome(): string {
  return (home ??= newHome());
}

/** Another empty home, removed when the test process ends. */
export function newHome(): string {
  const folder = mkdtempSync(join(tmpdir(), 'berth-home-'));
  process.once('exit', () => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** The complete environment of a run. */
export function cleanEnvironment(
  more: Readonly<Record<string, string | undefined>> = {},
): Record<string, string | undefined> {
  const { PATH, NODE_COMPILE_CACHE } = process.env;
  return { PATH, NODE_COMPILE_CACHE, HOME: ownHome(), LANG: 'C.UTF-8', TERM: 'xterm', TZ: 'UTC', ...more };
}

/** Runs berth to its end, with pipes. */
export async function berth(args: readonly string[], options: BerthOptions = {}): Promise<Ended> {
  const { child, ended } = startBerth(args, options);
  child.stdin.end(options.stdin ?? '');
  return await ended;
}

/** Starts berth with an open stdin. After the timeout, kills it and rejects `ended`. */
export function startBerth(
  args: readonly string[],
  { env = {}, timeout = DEADLINE_MS }: BerthOptions = {},
): { child: ChildProcessWithoutNullStreams; seen: Readonly<Ended>; ended: Promise<Ended> } {
  const child = spawn(process.execPath, [MAIN, ...args], { env: cleanEnvironment(env) });
  const seen: Ended = { code: null, stdout: '', stderr: '' };
  child.stdout.setEncoding('utf8').on('data', (chunk: string) => (seen.stdout += chunk));
  child.stderr.setEncoding('utf8').on('data', (chunk: string) => (seen.stderr += chunk));
  // The process may exit without reading.
  child.stdin.on('error', () => undefined);
  let late = false;
  const timer = setTimeout(() => {
    late = true;
    child.kill('SIGKILL');
  }, timeout);
  const ended = (async () => {
    const [code] = (await once(child, 'close')) as [number | null];
    clearTimeout(timer);
    assert.ok(
      !late,
      `berth ${args.join(' ')} did not end within ${timeout} ms; stdout ${seen.stdout}; stderr ${seen.stderr}`,
    );
    return { ...seen, code };
  })();
  return { child, seen, ended };
}
