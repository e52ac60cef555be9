// Starts a jailed QEMU that outlives this daemon, and finds out which process it is. Must not know
// what the machine does.
import { spawn, type ChildProcess } from 'node:child_process';
import nodeProcess from 'node:process';
import { writeFileSync } from 'node:fs';
import type { Readable, Writable } from 'node:stream';
import { setTimeout as delay } from 'node:timers/promises';
import { z } from 'zod';
import { DriverError } from '../../driver.ts';
import type { ProcessIdentity } from '@berth/os/process-identity.ts';
import { isSame, readProcess } from '@berth/os/process-identity.ts';
import { DEVICE_STATE_FD } from '../machine/argv.ts';
import { FILTER_FD, STATUS_FD } from './jail.ts';
import { QmpError } from '../machine/qmp.ts';
import { fileSizeFilter } from './seccomp.ts';

const START_DEADLINE_MS = 20_000;
/** What is kept of QEMU's messages, and of bwrap's report. */
const MESSAGES_BYTES = 8_192;
const REPORT_BYTES = 4_096;
/**
 * How fast messages are read; a QEMU that writes more waits, instead of costing this daemon its
 * time.
 */
export const MESSAGES_BYTES_PER_SECOND = 262_144;
const MESSAGES_PAUSE_MS = 1_000;
/** How long the end of a QEMU that is gone may take to be reported. */
const LAST_WORDS_MS = 1_000;
const LAST_WORDS_STEP_MS = 5;
/**
 * When the machine runs out of memory, the kernel ends a VM before anything that serves all of
 * them. From -1000 (never) to 1000 (first).
 */
const OOM_SCORE = '500';
/** Programs are looked up in the machine's own folders, whatever the daemon's PATH is. */
const SYSTEM_PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';

const report = z.object({ 'child-pid': z.int().min(2) });

/** A QEMU that has ended. The message holds its last messages. */
export class QemuEnded extends DriverError {
  override readonly name = 'QemuEnded';
  /** As bwrap reports it: 128 + n when signal n ended it. Null when bwrap itself was ended. */
  readonly exitCode: number | null;

  constructor(message: string, exitCode: number | null, options?: ErrorOptions) {
    super(message, options);
    this.exitCode = exitCode;
  }
}

/** A QEMU that was started by this daemon. */
export interface LaunchedQemu {
  process: ProcessIdentity;
  /** Aborts, with a {@link QemuEnded}, when it ends. */
  ended: AbortSignal;
  /** The write end of {@link DEVICE_STATE_FD}. */
  deviceState: Writable;
}

/**
 * Starts the command of `jailArgv` in a session of its own. Resolves with the identity of the
 * process inside the jail: QEMU, or what will be QEMU within the millisecond. Rejects with {@link
 * DriverError}.
 */
export async function launchQemu(
  [program, ...args]: [string, ...string[]],
  signal: AbortSignal,
): Promise<LaunchedQemu> {
  signal.throwIfAborted();
  // QEMU's messages come through a pipe, so that a QEMU in foreign hands cannot fill the disk; it
  // ignores that nobody reads once we are gone.
  const child = spawn(program, args, {
    detached: true,
    stdio: ['ignore', 'ignore', 'pipe', 'pipe', 'pipe', 'pipe'],
    env: { PATH: SYSTEM_PATH },
    cwd: '/',
  });
  const ended = watch(child);
  const filter = (child.stdio as readonly unknown[])[FILTER_FD] as Writable;
  // Who ends before reading it has its reason on the way.
  filter.on('error', () => undefined);
  filter.end(fileSizeFilter(nodeProcess.arch));
  try {
    const process = await jailedProcess(
      child,
      AbortSignal.any([signal, ended, AbortSignal.timeout(START_DEADLINE_MS)]),
    );
    offerToOom(process);
    child.unref();
    const deviceState = child.stdio[DEVICE_STATE_FD] as Writable;
    return { process, ended, deviceState };
  } catch (error) {
    // Who looks for processes of the slot may look before this one has entered it.
    child.kill('SIGKILL');
    throw error;
  }
}

function offerToOom({ pid }: ProcessIdentity): void {
  try {
    writeFileSync(`/proc/${pid}/oom_score_adj`, OOM_SCORE);
  } catch (error) {
    // One that is gone already has its reason on the way.
    if (!['ENOENT', 'ESRCH'].includes((error as NodeJS.ErrnoException).code ?? '')) throw error;
  }
}

/**
 * The better reason for a failure while talking to QEMU: its own last words when it has ended,
 * which is known a moment after its connections broke.
 */
export async function reasonOf(error: unknown, launched: LaunchedQemu): Promise<unknown> {
  const patience = AbortSignal.timeout(LAST_WORDS_MS);
  // One that is ending closes its connections before it is gone.
  const isEnding = async (): Promise<boolean> =>
    (error instanceof QmpError && error.over) || !(await isSame(launched.process));
  while (!launched.ended.aborted && !patience.aborted && (await isEnding())) await delay(LAST_WORDS_STEP_MS);

  return launched.ended.aborted ? launched.ended.reason : error;
}

function watch(child: ChildProcess): AbortSignal {
  const ended = new AbortController();
  let messages = '';
  const stderr = child.stderr as Readable;
  let unpausedBytes = 0;
  stderr.setEncoding('utf8').on('data', (text: string) => {
    messages = (messages + text).slice(-MESSAGES_BYTES);
    unpausedBytes += text.length;
    if (unpausedBytes >= MESSAGES_BYTES_PER_SECOND) {
      unpausedBytes = 0;
      stderr.pause();
      setTimeout(() => stderr.resume(), MESSAGES_PAUSE_MS).unref();
    }
  });
  stderr.on('error', (error) => (messages += error.message));
  // Writing to a QEMU that has ended: its end is reported below.
  (child.stdio[DEVICE_STATE_FD] as Writable).on('error', (error) => (messages += `device state: ${error.message}\n`));
  // The pipe to a QEMU that lives must not keep a daemon alive that wants to leave.
  for (const stream of child.stdio) (stream as { unref?: () => void } | null | undefined)?.unref?.();

  child.once('error', (error) =>
    ended.abort(new QemuEnded(`QEMU could not be started: ${error.message}`, null, { cause: error })),
  );
  child.once('close', (code, signalName) => {
    const how = signalName === null ? `with exit code ${code}` : `by ${signalName}`;
    ended.abort(new QemuEnded(`QEMU ended ${how}${messages === '' ? '' : `: ${messages.trim()}`}`, code));
  });
  return ended.signal;
}

/** The pid that bwrap reports, as the host sees it, with its start time. */
async function jailedProcess(child: ChildProcess, signal: AbortSignal): Promise<ProcessIdentity> {
  const stream = child.stdio[STATUS_FD] as Readable;
  let text = '';
  const whole = Promise.withResolvers<void>();
  whenAborted(signal, whole.reject);
  stream.setEncoding('utf8').on('data', (chunk: string) => {
    text = (text + chunk).slice(0, REPORT_BYTES);
    if (text.trimEnd().endsWith('}')) whole.resolve();
  });
  stream.on('error', (error) => whole.reject(error));
  try {
    await whole.promise;
    const process = await readProcess(report.parse(JSON.parse(text))['child-pid']);
    // One that is gone already has its reason on the way.
    return process ?? (await new Promise<never>((_resolve, reject) => whenAborted(signal, reject)));
  } finally {
    stream.destroy();
  }
}

function whenAborted(signal: AbortSignal, tell: (reason: unknown) => void): void {
  if (signal.aborted) tell(signal.reason);
  else signal.addEventListener('abort', () => tell(signal.reason), { once: true });
}
