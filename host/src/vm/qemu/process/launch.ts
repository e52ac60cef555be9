// Starts a jailed QEMU that outlives this daemon, and identifies its process. Knows nothing of the
// VM's work.
import { spawn, type ChildProcess } from 'node:child_process';
import nodeProcess from 'node:process';
import { writeFileSync } from 'node:fs';
import type { Readable, Writable } from 'node:stream';
import { setTimeout as delay } from 'node:timers/promises';
import { z } from 'zod';
import { hasCode } from '@berth/os/errors.ts';
import { SYSTEM_PATH } from '@berth/os/system-path.ts';
import { DriverError } from '../../driver.ts';
import type { ProcessIdentity } from '@berth/os/process-identity.ts';
import { isSame, readProcess } from '@berth/os/process-identity.ts';
import { DEVICE_STATE_FD } from '../machine/argv.ts';
import { FILTER_FD, PASSPHRASE_FD, STATUS_FD } from './jail.ts';
import { QmpError } from '../machine/qmp.ts';
import { qemuFilter } from './seccomp.ts';

const START_DEADLINE_MS = 20_000;
/** Bytes kept of QEMU's messages and of bwrap's report. */
const MESSAGES_BYTES = 8_192;
const REPORT_BYTES = 4_096;
/**
 * Read rate of QEMU's messages. A QEMU that writes more blocks instead of costing the daemon time.
 */
export const MESSAGES_BYTES_PER_SECOND = 262_144;
const MESSAGES_PAUSE_MS = 1_000;
/** Time for an exited QEMU's end to be reported. */
const EXIT_REPORT_MS = 1_000;
const LAST_WORDS_STEP_MS = 5;
/**
 * When the host runs out of memory, the kernel kills a VM before the daemons that serve all VMs.
 * Range: -1000 (never) to 1000 (first). The kernel adds the process's share of the memory, at most
 * 1000, so a daemon with all of it still scores below a VM.
 */
const OOM_SCORE = '1000';
const report = z.object({ 'child-pid': z.int().min(2) });

/** An exited QEMU. The error message contains QEMU's last messages. */
export class QemuEnded extends DriverError {
  override readonly name = 'QemuEnded';
  /** Exit code as reported by bwrap: 128 + n for signal n. Null if bwrap itself was killed. */
  readonly exitCode: number | null;

  constructor(message: string, exitCode: number | null, options?: ErrorOptions) {
    super(message, options);
    this.exitCode = exitCode;
  }
}

/** A QEMU started by this daemon. */
export interface LaunchedQemu {
  process: ProcessIdentity;
  /** Aborts with a {@link QemuEnded} when QEMU exits. */
  ended: AbortSignal;
  /** The write end of {@link DEVICE_STATE_FD}. */
  deviceState: Writable;
}

/**
 * Starts the command of `jailArgv` in a new POSIX session. Resolves with the identity of the
 * process inside the jail: QEMU, or the process that executes QEMU within a millisecond. Rejects
 * with {@link DriverError}.
 * @param passphrase of an encrypted disk, for {@link PASSPHRASE_FD}
 */
export async function launchQemu(
  [program, ...args]: [string, ...string[]],
  signal: AbortSignal,
  passphrase: string | null = null,
): Promise<LaunchedQemu> {
  signal.throwIfAborted();
  // Messages pass through a pipe, so that a compromised QEMU cannot fill the disk. QEMU tolerates a
  // missing reader after the daemon exits.
  const child = spawn(program, args, {
    detached: true,
    stdio: ['ignore', 'ignore', 'pipe', 'pipe', 'pipe', 'pipe', ...(passphrase === null ? [] : ['pipe' as const])],
    env: { PATH: SYSTEM_PATH },
    cwd: '/',
  });
  const ended = watch(child);
  feed(child, FILTER_FD, qemuFilter(nodeProcess.arch));
  if (passphrase !== null) feed(child, PASSPHRASE_FD, passphrase);
  try {
    const process = await jailedProcess(
      child,
      AbortSignal.any([signal, ended, AbortSignal.timeout(START_DEADLINE_MS)]),
    );
    preferForOomKill(process);
    child.unref();
    const deviceState = child.stdio[DEVICE_STATE_FD] as Writable;
    return { process, ended, deviceState };
  } catch (error) {
    // A search for the slot's processes may run before this one enters the slot.
    child.kill('SIGKILL');
    throw error;
  }
}

function feed(child: ChildProcess, fd: number, content: Buffer | string): void {
  const pipe = (child.stdio as readonly unknown[])[fd] as Writable;
  // EPIPE: QEMU exited before reading; `ended` reports why.
  pipe.on('error', () => undefined);
  pipe.end(content);
}

function preferForOomKill({ pid }: ProcessIdentity): void {
  try {
    writeFileSync(`/proc/${pid}/oom_score_adj`, OOM_SCORE);
  } catch (error) {
    // Already exited; `ended` reports why.
    if (!hasCode(error, 'ENOENT', 'ESRCH')) throw error;
  }
}

/**
 * The best reason for a failed exchange with QEMU: QEMU's last messages if it exited, which is
 * known a moment after its connections broke.
 */
export async function reasonOf(error: unknown, launched: LaunchedQemu): Promise<unknown> {
  const timeout = AbortSignal.timeout(EXIT_REPORT_MS);
  // An exiting QEMU closes its connections first.
  const isEnding = async (): Promise<boolean> =>
    (error instanceof QmpError && error.over) || !(await isSame(launched.process));
  while (!launched.ended.aborted && !timeout.aborted && (await isEnding())) await delay(LAST_WORDS_STEP_MS);

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
  // Writing to an exited QEMU; its end is reported below.
  (child.stdio[DEVICE_STATE_FD] as Writable).on('error', (error) => (messages += `device state: ${error.message}\n`));
  // Pipes to a running QEMU must not keep the daemon from exiting.
  for (const stream of child.stdio) (stream as { unref?: () => void } | null | undefined)?.unref?.();

  child.once('error', (error) =>
    ended.abort(new QemuEnded(`QEMU could not be started: ${error.message}`, null, { cause: error })),
  );
  child.once('close', (code, signalName) => {
    const how = signalName === null ? `with exit code ${code}` : `by ${signalName}`;
    ended.abort(new QemuEnded(`QEMU exited ${how}${messages === '' ? '' : `: ${messages.trim()}`}`, code));
  });
  return ended.signal;
}

/** The pid reported by bwrap, as seen by the host, with its start time. */
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
    // Already exited; `ended` reports why.
    return process ?? (await new Promise<never>((_resolve, reject) => whenAborted(signal, reject)));
  } finally {
    stream.destroy();
  }
}

function whenAborted(signal: AbortSignal, tell: (reason: unknown) => void): void {
  if (signal.aborted) tell(signal.reason);
  else signal.addEventListener('abort', () => tell(signal.reason), { once: true });
}
