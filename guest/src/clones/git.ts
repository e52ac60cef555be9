// Runs git for a clone: as the tenant's user, in a process group that exits with this daemon, with
// only the settings below. Git never prompts, runs no hooks and fetches no submodules. Knows
// nothing of the clone's folders.
import { spawn, type ChildProcess, type SpawnOptions } from 'node:child_process';
import { readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import type { GuestClone } from '@berth/protocol/calls/clones.ts';
import { CLONE_OUTPUT_BYTES } from '@berth/protocol/guest-limits.ts';
import { hasCode } from '@berth/os/errors.ts';
import { SYSTEM_PATH } from '@berth/os/system-path.ts';
import { killGroup } from '../commands/process-groups.ts';
import type { GuestUser } from '../machine/config.ts';
import type { OomProtection } from '../machine/oom-protection.ts';
import { Tail } from '../commands/tail.ts';

/** Timeout for a killed program to exit (uninterruptible call), and then for its output. */
const GONE_DEADLINE_MS = 5_000;
const SIZE_EVERY_MS = 500;
/** A transfer below this rate for this long is aborted. */
const STALLED = { bytesPerSecond: 1, seconds: 120 };

/**
 * Kills the process group when the daemon exits, however it exits: the kernel signals the leader
 * only (parent-death signal), and the leader kills the group.
 */
const LEADER = 'trap "kill -s KILL 0" TERM; "$@" & wait $!';

interface ProgramOptions {
  user: GuestUser;
  folder: string;
  env: Readonly<Record<string, string>>;
  protection: OomProtection | undefined;
  /** Receives the program's stderr; readable while it runs, and after an abort. */
  output?: Tail;
  /** Abort kills the process group. */
  signal: AbortSignal;
}

/** Keeps the last output of a program; a few lines are normal, a server may send more. */
export function outputTail(): Tail {
  return new Tail(CLONE_OUTPUT_BYTES);
}

interface Ended {
  code: number | null;
  /** The last whole lines of its stderr: a line cut inside a secret would leave a part of it. */
  words: string;
}

/**
 * Runs a program until it exits. When the signal aborts, kills its process group and rejects with
 * the signal's reason after the program has exited.
 */
export async function runProgram(program: string, args: readonly string[], options: ProgramOptions): Promise<Ended> {
  const { signal } = options;
  signal.throwIfAborted();
  const child = start(program, args, options);
  const { output: words = outputTail() } = options;
  child.stderr?.on('data', (chunk: Buffer) => words.push(chunk));
  const ended = Promise.withResolvers<number | null>();
  child.once('error', ended.reject);
  child.once('exit', (code) => {
    // Reads the remaining output before settling, unless another process holds it open.
    const told = (): void => ended.resolve(code);
    child.once('close', told);
    setTimeout(told, GONE_DEADLINE_MS).unref();
  });
  const kill = (): void => {
    if (child.exitCode === null && child.signalCode === null) {
      killGroup(child.pid);
      setTimeout(() => ended.resolve(null), GONE_DEADLINE_MS).unref();
    }
  };
  signal.addEventListener('abort', kill, { once: true });
  try {
    const code = await ended.promise;
    signal.throwIfAborted();
    const text = words.text();
    return { code, words: words.truncated ? text.replace(/^[^\n]*\n?/, '') : text };
  } finally {
    signal.removeEventListener('abort', kill);
  }
}

function start(
  program: string,
  args: readonly string[],
  { user, folder, env, protection }: ProgramOptions,
): ChildProcess {
  const options: SpawnOptions = {
    cwd: folder,
    env: { PATH: SYSTEM_PATH, ...env },
    stdio: ['ignore', 'ignore', 'pipe'],
    detached: true,
    ...(process.getuid?.() === user.uid ? {} : { uid: user.uid, gid: user.gid }),
  };
  protection?.remove();
  try {
    return spawn('setpriv', ['--pdeathsig', 'TERM', '--', '/bin/sh', '-c', LEADER, 'sh', program, ...args], options);
  } finally {
    protection?.restore();
  }
}

/** Git's settings for the clone: environment variables, so that none stays in the repository. */
export function environmentOf(clone: GuestClone, home: string, helper: string | null): Record<string, string> {
  const settings: [string, string][] = [
    // An empty value drops the earlier helpers.
    ['credential.helper', ''],
    ...(helper === null ? [] : [['credential.helper', helper] as [string, string]]),
    ['credential.useHttpPath', 'true'],
    ['core.hooksPath', '/dev/null'],
    ['core.fsmonitor', 'false'],
    ['submodule.recurse', 'false'],
    ['transfer.bundleURI', 'false'],
    ['maintenance.auto', 'false'],
    ['http.lowSpeedLimit', String(STALLED.bytesPerSecond)],
    ['http.lowSpeedTime', String(STALLED.seconds)],
  ];
  return {
    HOME: home,
    LC_ALL: 'C',
    GIT_TERMINAL_PROMPT: '0',
    GIT_CONFIG_NOSYSTEM: '1',
    GIT_CONFIG_GLOBAL: '/dev/null',
    GIT_ALLOW_PROTOCOL: clone.url.startsWith('https:') ? 'https' : 'http:https',
    GIT_CONFIG_COUNT: String(settings.length),
    ...Object.fromEntries(
      settings.flatMap(([key, value], index) => [
        [`GIT_CONFIG_KEY_${index}`, key],
        [`GIT_CONFIG_VALUE_${index}`, value],
      ]),
    ),
  };
}

export function argumentsOf({ url, branch }: GuestClone, into: string): string[] {
  return ['clone', '--no-recurse-submodules', ...(branch === null ? [] : [`--branch=${branch}`]), '--', url, into];
}

/** Polls the size of the fetched packs; calls back once above the limit. Returns its stop. */
export function watchSize(repository: string, maxBytes: number, tooLarge: () => void): () => void {
  const timer = setInterval(() => {
    if (fetchedBytes(repository) > maxBytes) {
      clearInterval(timer);
      tooLarge();
    }
  }, SIZE_EVERY_MS);
  return () => clearInterval(timer);
}

/**
 * Bytes in packs, which is where a clone stores what it fetches. An unreadable folder counts as 0:
 * only the tenant can have caused that.
 */
export function fetchedBytes(repository: string): number {
  const packs = join(repository, '.git', 'objects', 'pack');
  try {
    return readdirSync(packs).reduce(
      (sum, name) => sum + (statSync(join(packs, name), { throwIfNoEntry: false })?.size ?? 0),
      0,
    );
  } catch (error) {
    if (!hasCode(error, 'ENOENT')) console.error(`${packs} cannot be looked at:`, error);

    return 0;
  }
}
