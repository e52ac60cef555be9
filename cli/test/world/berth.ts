// The command `berth` as a process of its own, with a home of the test's and nothing of the
// tester's environment: no BERTH_*, no XDG_*, no NO_COLOR.
import assert from 'node:assert/strict';
import { spawn, type ChildProcessWithoutNullStreams } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

export const MAIN = join(import.meta.dirname, '../../src/main.ts');
const DEADLINE_MS = 120_000;

export interface BerthOptions {
  /** On top of `cleanEnvironment()`; `HOME` too can be another. */
  env?: Readonly<Record<string, string | undefined>>;
  /** What comes in, then its end; without it there is nothing to read. */
  stdin?: string | Buffer;
  /** Milliseconds until the test fails. */
  timeout?: number;
}

export interface Ended {
  /** null: ended by a signal. */
  code: number | null;
  stdout: string;
  stderr: string;
}

let home: string | undefined;

/** An empty home of this test process alone, for all its runs that name no other. */
function ownHome(): string {
  return (home ??= newHome());
}

/** A further one. Removed when the test process ends. */
export function newHome(): string {
  const folder = mkdtempSync(join(tmpdir(), 'berth-home-'));
  process.once('exit', () => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** All that a run knows of where it runs. */
export function cleanEnvironment(
  more: Readonly<Record<string, string | undefined>> = {},
): Record<string, string | undefined> {
  const { PATH, NODE_COMPILE_CACHE } = process.env;
  return { PATH, NODE_COMPILE_CACHE, HOME: ownHome(), LANG: 'C.UTF-8', TERM: 'xterm', TZ: 'UTC', ...more };
}

/** Runs it to its end, with pipes for all three streams. */
export async function berth(args: readonly string[], options: BerthOptions = {}): Promise<Ended> {
  const { child, ended } = startBerth(args, options);
  child.stdin.end(options.stdin ?? '');
  return await ended;
}

/**
 * Starts it and leaves its stdin open. `ended` fails after the timeout, and the process with it.
 */
export function startBerth(
  args: readonly string[],
  { env = {}, timeout = DEADLINE_MS }: BerthOptions = {},
): { child: ChildProcessWithoutNullStreams; seen: Readonly<Ended>; ended: Promise<Ended> } {
  const child = spawn(process.execPath, [MAIN, ...args], { env: cleanEnvironment(env) });
  const seen: Ended = { code: null, stdout: '', stderr: '' };
  child.stdout.setEncoding('utf8').on('data', (chunk: string) => (seen.stdout += chunk));
  child.stderr.setEncoding('utf8').on('data', (chunk: string) => (seen.stderr += chunk));
  // It may end without reading.
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
