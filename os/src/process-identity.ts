// Processes that need not be children of this daemon: identify, watch and end them. A process is
// its pid plus its start time and boot; a reused pid is never signalled.
import { readFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { hasCode, nullOn } from './errors.ts';

/**
 * Poll interval of a process that is not our child: the kernel offers Node no event for its exit.
 */
const POLL_MS = 250;

/**
 * Time for a process to disappear after SIGKILL: it frees its memory and waits for disk writes in
 * flight.
 */
const KILL_DEADLINE_MS = 20_000;

/** Distinguishes a process from a later one with the same pid. */
export interface ProcessIdentity {
  pid: number;
  /** Field 22 of /proc/PID/stat, in clock ticks since boot; differs for a reused pid. */
  startTicks: string;
  /** /proc/sys/kernel/random/boot_id */
  bootId: string;
}

let thisBootId: string | undefined;

/** Id of the current boot; records of another boot name no living process. */
export function bootId(): string {
  thisBootId ??= readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
  return thisBootId;
}

/** Identity of the process with this pid; null if there is none, or only its zombie. */
export async function readProcess(pid: number): Promise<ProcessIdentity | null> {
  return look(pid);
}

/**
 * True if the recorded process still runs: same boot, pid and start time. A zombie does not run.
 */
export async function isSame(process: ProcessIdentity): Promise<boolean> {
  return lives(process);
}

/** Rejects if the recorded process no longer runs. */
export async function assertRuns(process: ProcessIdentity): Promise<void> {
  if (!lives(process)) throw new Error(`the process ${process.pid} has ended`);
}

/**
 * Resolves when the recorded process is gone or the signal aborts (check `signal.aborted`), with
 * the time it was last seen running, in milliseconds since 1970. Never rejects. Works for an
 * earlier daemon's processes, which are not our children.
 */
export async function processExited(process: ProcessIdentity, signal: AbortSignal): Promise<number> {
  let lastAliveUnixMs = Date.now();
  while (!signal.aborted && lives(process)) {
    lastAliveUnixMs = Date.now();
    // The timer rejects only on abort, which the loop's condition checks.
    await delay(POLL_MS, undefined, { signal }).catch(() => undefined);
  }
  return lastAliveUnixMs;
}

/**
 * Signals the recorded process and no other: check and kill happen in one tick. False if it no
 * longer runs. Throws if the kernel refuses (EPERM).
 */
export async function killProcess(target: ProcessIdentity, signalName: NodeJS.Signals): Promise<boolean> {
  if (!lives(target)) return false;

  return sendSignal(target.pid, signalName);
}

/**
 * Ends the recorded process; resolves when it and all its threads are gone. With `graceMs` it first
 * gets SIGTERM and that long to exit, then SIGKILL. Throws if it is still there 20 s after SIGKILL.
 */
export async function endProcess(process: ProcessIdentity, options: { graceMs?: number } = {}): Promise<void> {
  const graceMs = options.graceMs ?? 0;
  if (graceMs > 0 && (await killProcess(process, 'SIGTERM')) && (await goneWithin(process, graceMs))) return;

  await killProcess(process, 'SIGKILL');
  if (!(await goneWithin(process, KILL_DEADLINE_MS)))
    throw new Error(`process ${process.pid} still exists ${KILL_DEADLINE_MS / 1000} s after SIGKILL`);
}

/** Polls at short intervals first: a killed process is usually gone within milliseconds. */
async function goneWithin(process: ProcessIdentity, limitMs: number): Promise<boolean> {
  const beganAt = performance.now();
  const deadline = beganAt + limitMs;
  while (lives(process)) {
    const leftMs = deadline - performance.now();
    if (leftMs <= 0) return false;

    // A twentieth of the elapsed time: frequent at first, rare in a long wait.
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

/** A process's name, and the fields of its /proc/PID/stat from the third on; null if it is gone. */
export function readStat(pid: number): { name: string; fields: string[] } | null {
  const stat = nullOn(['ENOENT', 'ESRCH'], () => readFileSync(`/proc/${pid}/stat`, 'latin1'));
  if (stat === null) return null;

  // The name may contain spaces and parentheses.
  const end = stat.lastIndexOf(')');
  return { name: stat.slice(stat.indexOf('(') + 1, end), fields: stat.slice(end + 2).split(' ') };
}

function look(pid: number): ProcessIdentity | null {
  if (!Number.isSafeInteger(pid) || pid <= 1) return null;

  const fields = readStat(pid)?.fields;
  if (fields === undefined) return null;

  const [state, threads, startTicks] = [fields[0], fields[17], fields[19]];
  if (state === undefined || threads === undefined || startTicks === undefined)
    throw new Error(`/proc/${pid}/stat has an unknown format`);

  // A zombie leader whose other threads run (num_threads > 1) still holds its memory, files and
  // sockets.
  const gone = (state === 'Z' || state === 'X') && Number(threads) <= 1;
  return gone ? null : { pid, startTicks, bootId: bootId() };
}

function sendSignal(pid: number, signalName: NodeJS.Signals): boolean {
  try {
    return process.kill(pid, signalName);
  } catch (error) {
    if (hasCode(error, 'ESRCH')) return false;

    throw error;
  }
}
