// Processes that may not be children of this daemon: who they are, whether they still run, how they
// end. A process is its pid plus its start time and boot; nothing here ever signals a pid that was
// given to someone else.
import { readFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';

/**
 * How often a process that is no child of ours is looked at: the kernel offers Node no event for
 * its end.
 */
const POLL_MS = 250;

/**
 * How long a process may take to be gone after SIGKILL: it frees its memory, and a disk write in
 * flight must end.
 */
const KILL_DEADLINE_MS = 20_000;

/** A process that is told apart from a later one with the same pid. */
export interface ProcessIdentity {
  pid: number;
  /** Field 22 of /proc/PID/stat, in clock ticks since boot: a reused pid has another one. */
  startTicks: string;
  /** /proc/sys/kernel/random/boot_id */
  bootId: string;
}

let thisBootId: string | undefined;

/** The boot this machine is in; records of another boot name no living process. */
export function bootId(): string {
  thisBootId ??= readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
  return thisBootId;
}

/**
 * The identity of the process that has this pid now; null when there is none, or only its zombie.
 */
export async function readProcess(pid: number): Promise<ProcessIdentity | null> {
  return look(pid);
}

/**
 * Whether the recorded process still runs: same boot, same pid, same start time. A zombie does not
 * run.
 */
export async function isSame(process: ProcessIdentity): Promise<boolean> {
  return lives(process);
}

/** Rejects when the recorded process does not run any more. */
export async function assertRuns(process: ProcessIdentity): Promise<void> {
  if (!lives(process)) throw new Error(`the process ${process.pid} has ended`);
}

/**
 * Resolves when the recorded process is gone, or when the signal aborts (look at `signal.aborted`
 * to tell), with the time at which it was last seen to run, in milliseconds since 1970. Never
 * rejects. Works for processes of an earlier daemon, which are nobody's children.
 */
export async function processExited(process: ProcessIdentity, signal: AbortSignal): Promise<number> {
  let lastAliveUnixMs = Date.now();
  while (!signal.aborted && lives(process)) {
    lastAliveUnixMs = Date.now();
    // The only rejection of this timer is the abort, which the loop's condition sees.
    await delay(POLL_MS, undefined, { signal }).catch(() => undefined);
  }
  return lastAliveUnixMs;
}

/**
 * Sends a signal to the recorded process, and to no other: the look and the kill happen in one
 * tick. False when it no longer runs. Throws when the kernel refuses (EPERM).
 */
export async function killProcess(target: ProcessIdentity, signalName: NodeJS.Signals): Promise<boolean> {
  if (!lives(target)) return false;

  return sendSignal(target.pid, signalName);
}

/**
 * Ends the recorded process and resolves when it is gone with all its threads. With `graceMs` it
 * gets SIGTERM and that long to leave by itself, then SIGKILL. Throws when it is still there 20 s
 * after SIGKILL.
 */
export async function endProcess(process: ProcessIdentity, options: { graceMs?: number } = {}): Promise<void> {
  const graceMs = options.graceMs ?? 0;
  if (graceMs > 0 && (await killProcess(process, 'SIGTERM')) && (await goneWithin(process, graceMs))) return;

  await killProcess(process, 'SIGKILL');
  if (!(await goneWithin(process, KILL_DEADLINE_MS)))
    throw new Error(`process ${process.pid} is still there ${KILL_DEADLINE_MS / 1000} s after SIGKILL`);
}

/** Waits with short steps at first: a killed process is usually gone within milliseconds. */
async function goneWithin(process: ProcessIdentity, limitMs: number): Promise<boolean> {
  const beganAt = performance.now();
  const deadline = beganAt + limitMs;
  while (lives(process)) {
    const leftMs = deadline - performance.now();
    if (leftMs <= 0) return false;

    // A twentieth of what it took so far: looked at often at first, and seldom when it takes long.
    const stepMs = Math.min(1 + (performance.now() - beganAt) / 20, 50);
    await delay(Math.min(stepMs, leftMs));
  }
  return true;
}

function lives(process: ProcessIdentity): boolean {
  if (process.bootId !== bootId()) return false;

  const now = look(process.pid);
  return now !== null && now.startTicks === process.startTicks;
}

function look(pid: number): ProcessIdentity | null {
  if (!Number.isSafeInteger(pid) || pid <= 1) return null;

  let stat: string;
  try {
    stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code;
    if (code === 'ENOENT' || code === 'ESRCH') return null;

    throw error;
  }
  // The name in parentheses may hold spaces and parentheses; fields 3 and on stand after the last
  // one.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  const [state, threads, startTicks] = [fields[0], fields[17], fields[19]];
  if (state === undefined || threads === undefined || startTicks === undefined)
    throw new Error(`/proc/${pid}/stat has an unknown form`);

  // A zombie leader whose other threads still run (num_threads > 1) holds its memory, files and
  // sockets yet.
  const gone = (state === 'Z' || state === 'X') && Number(threads) <= 1;
  return gone ? null : { pid, startTicks, bootId: bootId() };
}

function sendSignal(pid: number, signalName: NodeJS.Signals): boolean {
  try {
    return process.kill(pid, signalName);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ESRCH') return false;

    throw error;
  }
}
