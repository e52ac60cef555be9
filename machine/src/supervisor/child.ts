// A started service process: its true pid, its output, its exit. Knows nothing of the service or
// its restarts.
import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { constants } from 'node:os';
import type { Readable, Writable } from 'node:stream';
import { setTimeout as delay } from 'node:timers/promises';
import { isSame, killProcess, readProcess, readStat } from '@berth/os/process-identity.ts';
import type { ProcessIdentity } from '@berth/os/process-identity.ts';
import { SYSTEM_PATH } from '@berth/os/system-path.ts';
import { FILTER_FD, STATUS_FD, confinedArgv } from './confinement.ts';
import type { Confined } from './confinement.ts';
import { serviceFilter } from '@berth/os/confinement/service-filter.ts';

/** Time for bwrap to report its child; it needs some ten milliseconds. */
const START_DEADLINE_MS = 20_000;

/** Longest wait for an exited service's remaining output. */
const OUTPUT_GRACE_MS = 250;

export interface RunningChild {
  /** The service itself, not its wrapper. */
  process: ProcessIdentity;
  /** Resolves with the exit description ('exit code 1', 'signal SIGKILL'). Never rejects. */
  exited: Promise<string>;
  /** Value of `exited`; null before. */
  readonly endedBy: string | null;
  /** Sends the signal, waits `graceMs`, then SIGKILL; resolves when it is gone. Idempotent. */
  stop(signalName: NodeJS.Signals, graceMs: number): Promise<void>;
}

interface PlainCommand {
  command: readonly [string, ...string[]];
  environment: Readonly<Record<string, string>>;
  workingFolder: string;
}

/**
 * Starts a confined service; resolves when its own process runs. Rejects with the exit description
 * if it never appears.
 */
export async function startConfined(confined: Confined, onOutput: (chunk: Buffer) => void): Promise<RunningChild> {
  const [program, ...args] = confinedArgv(confined);
  const filter = serviceFilter(process.arch);
  // Separate POSIX session: Ctrl-C in the operator's terminal reaches only the supervisor, which
  // stops the services in order.
  const child = spawn(program, args, {
    stdio: ['ignore', 'pipe', 'pipe', 'pipe', 'pipe'],
    detached: true,
    env: { PATH: SYSTEM_PATH, ...confined.environment },
  });
  const filterPipe = (child.stdio as readonly unknown[])[FILTER_FD] as Writable;
  // EPIPE: bwrap exited before reading it; its exit and output give the reason.
  filterPipe.on('error', () => undefined);
  filterPipe.end(filter);
  const exited = watchEnd(child);
  forwardOutput(child, onOutput);
  return describe(await confinedProcess(child, exited), exited);
}

/**
 * Starts a service with this process's own rights; it gets SIGTERM when this process dies. Rejects
 * with the exit description if the service exits before it was identified.
 */
export async function startPlain(plain: PlainCommand, onOutput: (chunk: Buffer) => void): Promise<RunningChild> {
  // A core file would contain the service's secrets.
  const limits = ['prlimit', '--core=0', '--'];
  const child = spawn('setpriv', ['--pdeathsig', 'TERM', '--', ...limits, ...plain.command], {
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true,
    cwd: plain.workingFolder,
    env: { PATH: SYSTEM_PATH, ...plain.environment },
  });
  const exited = watchEnd(child);
  forwardOutput(child, onOutput);
  const process = child.pid === undefined ? null : await readProcess(child.pid);
  if (process === null) throw new Error(await exited);

  return describe(process, exited);
}

function describe(process: ProcessIdentity, exited: Promise<string>): RunningChild {
  const child = {
    process,
    exited,
    endedBy: null as string | null,
    stop: (signalName: NodeJS.Signals, graceMs: number) => stopChild(process, exited, signalName, graceMs),
  };
  void exited.then((reason) => (child.endedBy = reason));
  return child;
}

function watchEnd(child: ChildProcess): Promise<string> {
  return new Promise((resolve) => {
    child.once('error', (error) => resolve(error.message));
    child.once('exit', (code, signalName) => {
      const reason = describeEnd(code, signalName);
      // The last output may still be in flight; a process that inherited the pipe must not block
      // this.
      const late = setTimeout(() => resolve(reason), OUTPUT_GRACE_MS);
      child.once('close', () => {
        clearTimeout(late);
        resolve(reason);
      });
    });
  });
}

/** bwrap exits with 128 + n if signal n ended the service. */
function describeEnd(code: number | null, signalName: NodeJS.Signals | null): string {
  if (signalName !== null) return `signal ${signalName}`;

  const ended = Object.entries(constants.signals).find(([, number]) => code === 128 + number);
  return ended === undefined ? `exit code ${code}` : `signal ${ended[0]}`;
}

function forwardOutput(child: ChildProcess, onOutput: (chunk: Buffer) => void): void {
  child.stdout?.on('data', onOutput);
  child.stderr?.on('data', onOutput);
}

async function stopChild(
  process: ProcessIdentity,
  exited: Promise<string>,
  signalName: NodeJS.Signals,
  graceMs: number,
): Promise<void> {
  await killProcess(process, signalName);
  const timeout = new AbortController();
  const late = delay(graceMs, 'late' as const, { signal: timeout.signal }).catch(() => 'ended' as const);
  const winner = await Promise.race([exited.then(() => 'ended' as const), late]);
  timeout.abort();
  if (winner === 'late') await killProcess(process, 'SIGKILL');

  await exited;
}

/** The service is the child of bwrap's first process inside, whose pid bwrap reports. */
async function confinedProcess(child: ChildProcess, exited: Promise<string>): Promise<ProcessIdentity> {
  const ended = exited.then((reason): never => {
    throw new Error(`could not start the service in confinement: ${reason}`);
  });
  // The loser of the race must not become an unhandled rejection.
  ended.catch(() => undefined);
  const deadline = performance.now() + START_DEADLINE_MS;
  const reported = await Promise.race([readChildPid(child.stdio[STATUS_FD] as Readable), ended]);
  // Without a report bwrap is exiting; its exit and output give the reason.
  const firstPid = reported ?? (await ended);
  for (;;) {
    const process = await serviceBelow(firstPid);
    if (process !== null) return process;

    if (performance.now() > deadline) {
      child.kill('SIGKILL');
      throw new Error(`the service did not start in confinement within ${START_DEADLINE_MS / 1000} s`);
    }
    await Promise.race([delay(2), ended]);
  }
}

/** The pid reported by bwrap; null if it closes the pipe without one. */
function readChildPid(status: Readable): Promise<number | null> {
  return new Promise((resolve, reject) => {
    let text = '';
    status.setEncoding('utf8');
    status.on('data', (chunk: string) => {
      text += chunk;
      const pid = /"child-pid"\s*:\s*(\d+)/.exec(text)?.[1];
      if (pid !== undefined) resolve(Number(pid));
    });
    status.once('end', () => resolve(null));
    status.once('error', reject);
  });
}

/**
 * The child of bwrap's first process once it is the service: until its last exec it is named bwrap
 * or setpriv.
 */
async function serviceBelow(firstPid: number): Promise<ProcessIdentity | null> {
  for (const entry of readdirSync('/proc')) {
    if (!/^\d+$/.test(entry)) continue;

    const stat = readStat(Number(entry));
    if (stat !== null && Number(stat.fields[1]) === firstPid && stat.name !== 'bwrap' && stat.name !== 'setpriv') {
      const process = await readProcess(Number(entry));
      return process !== null && (await isSame(process)) ? process : null;
    }
  }
  return null;
}
