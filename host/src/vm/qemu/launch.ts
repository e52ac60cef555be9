// Starts a jailed QEMU that outlives this daemon, and finds out which process it is. Must not know what the machine does.
import { spawn, type ChildProcess } from 'node:child_process';
import type { Readable, Writable } from 'node:stream';
import { z } from 'zod';
import { DriverError, type VmProcess } from '../driver.ts';
import { readProcess } from '../process.ts';
import { DEVICE_STATE_FD } from './argv.ts';
import { STATUS_FD } from './jail.ts';

const START_DEADLINE_MS = 20_000;
/** What is kept of QEMU's messages, and of bwrap's report. */
const MESSAGES_BYTES = 8_192;
const REPORT_BYTES = 4_096;
/** Programs are looked up in the machine's own folders, whatever the daemon's PATH is. */
const SYSTEM_PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';

const report = z.object({ 'child-pid': z.int().min(2) });

/** A QEMU that was started by this daemon. */
export interface LaunchedQemu {
  process: VmProcess;
  /** Aborts, with a {@link DriverError} that holds QEMU's last messages, when it ends. */
  ended: AbortSignal;
  /** The write end of {@link DEVICE_STATE_FD}. */
  deviceState: Writable;
}

/**
 * Starts the command of `jailArgv` in a session of its own. Resolves with the identity of the process inside the jail: QEMU, or what will be QEMU
 * within the millisecond. Rejects with {@link DriverError}.
 */
export async function launchQemu([program, ...args]: [string, ...string[]], signal: AbortSignal): Promise<LaunchedQemu> {
  signal.throwIfAborted();
  // QEMU's messages come through a pipe, so that a QEMU in foreign hands cannot fill the disk; it ignores that nobody reads once we are gone.
  const child = spawn(program, args, {
    detached: true,
    stdio: ['ignore', 'ignore', 'pipe', 'pipe', 'pipe'],
    env: { PATH: SYSTEM_PATH },
    cwd: '/',
  });
  const ended = watch(child);
  const process = await jailedProcess(child, AbortSignal.any([signal, ended, AbortSignal.timeout(START_DEADLINE_MS)]));
  child.unref();
  const deviceState = child.stdio[DEVICE_STATE_FD] as Writable;
  return { process, ended, deviceState };
}

function watch(child: ChildProcess): AbortSignal {
  const ended = new AbortController();
  let messages = '';
  const stderr = child.stderr as Readable;
  stderr.setEncoding('utf8').on('data', (text: string) => {
    messages = (messages + text).slice(-MESSAGES_BYTES);
  });
  stderr.on('error', (error) => (messages += error.message));
  // Writing to a QEMU that has ended: its end is reported below.
  (child.stdio[DEVICE_STATE_FD] as Writable).on('error', (error) => (messages += `device state: ${error.message}\n`));
  // The pipe to a QEMU that lives must not keep a daemon alive that wants to leave.
  for (const stream of child.stdio) {
    (stream as { unref?: () => void } | null | undefined)?.unref?.();
  }
  child.once('error', (error) => ended.abort(new DriverError(`QEMU could not be started: ${error.message}`, { cause: error })));
  child.once('close', (code, signalName) => {
    const how = signalName === null ? `with exit code ${code}` : `by ${signalName}`;
    ended.abort(new DriverError(`QEMU ended ${how}${messages === '' ? '' : `: ${messages.trim()}`}`));
  });
  return ended.signal;
}

/** The pid that bwrap reports, as the host sees it, with its start time. */
async function jailedProcess(child: ChildProcess, signal: AbortSignal): Promise<VmProcess> {
  const stream = child.stdio[STATUS_FD] as Readable;
  let text = '';
  const whole = Promise.withResolvers<void>();
  const onAbort = (): void => whole.reject(signal.reason);
  signal.addEventListener('abort', onAbort, { once: true });
  stream.setEncoding('utf8').on('data', (chunk: string) => {
    text = (text + chunk).slice(0, REPORT_BYTES);
    if (text.trimEnd().endsWith('}')) {
      whole.resolve();
    }
  });
  stream.on('error', (error) => whole.reject(error));
  try {
    await whole.promise;
    const process = await readProcess(report.parse(JSON.parse(text))['child-pid']);
    if (process === null) {
      throw new DriverError('QEMU ended at once');
    }
    return process;
  } finally {
    signal.removeEventListener('abort', onAbort);
    stream.destroy();
  }
}
