// A running command: output, timeout, exit. The response waits for the shell, not the pipes.
import type { ChildProcess } from 'node:child_process';
import { constants } from 'node:os';
import type { GuestExecResult } from '@berth/protocol/calls/exec.ts';
import { hasCode } from '@berth/os/errors.ts';
import type { Output } from './output.ts';

const TIMED_OUT_EXIT_CODE = 124;
/** Timeout for a killed shell to exit (uninterruptible call); then the response is sent anyway. */
const GONE_DEADLINE_MS = 5_000;

export class RunningCommand {
  /** Settles when the shell has exited, or 5 s after it was killed. Never rejects. */
  readonly result: Promise<GuestExecResult>;
  readonly stdout: Output;
  readonly stderr: Output;
  readonly #child: ChildProcess;
  readonly #timer: NodeJS.Timeout;
  #goneTimer: NodeJS.Timeout | undefined;
  #resolve: (result: GuestExecResult) => void;
  #timedOut = false;
  #ended = false;

  /** `child` leads a process group. */
  constructor(child: ChildProcess, stdout: Output, stderr: Output, timeoutSeconds: number) {
    this.#child = child;
    this.stdout = stdout;
    this.stderr = stderr;
    const { promise, resolve } = Promise.withResolvers<GuestExecResult>();
    this.result = promise;
    this.#resolve = resolve;
    this.#timer = setTimeout(() => {
      this.#timedOut = true;
      this.kill();
    }, timeoutSeconds * 1_000);
    child.once('exit', (code, signal) => this.#end(code, signal));
  }

  /** Kills the process group. No effect after the shell's exit: the group id may be reused. */
  kill(): void {
    if (this.#ended || this.#goneTimer !== undefined) return;

    this.#goneTimer = setTimeout(() => this.#end(null, 'SIGKILL'), GONE_DEADLINE_MS);
    killGroup(this.#child.pid);
  }

  #end(code: number | null, signal: NodeJS.Signals | null): void {
    if (this.#ended) return;

    this.#ended = true;
    clearTimeout(this.#timer);
    clearTimeout(this.#goneTimer);
    // A shell that exited just as its timeout expired has not timed out.
    const timedOut = this.#timedOut && signal === 'SIGKILL';
    const stdout = this.stdout.finish();
    const stderr = this.stderr.finish();
    this.#resolve({
      exitCode: timedOut ? TIMED_OUT_EXIT_CODE : (code ?? 128 + (signal === null ? 0 : constants.signals[signal])),
      stdout,
      stderr,
      truncated: this.stdout.truncated || this.stderr.truncated,
      timedOut,
    });
  }
}

/** Kills a group whose leader has not been reaped, so that the id cannot be reused. */
export function killGroup(leader: number | undefined): void {
  if (leader !== undefined) signalGroup(leader, 'SIGKILL');
}

/** Signals every process of the group, if it still exists. */
export function signalGroup(group: number, signal: NodeJS.Signals): void {
  // To kill(2), 0 and -1 are not groups but almost every process.
  if (group <= 1) throw new Error(`${group} is no process group of a command`);

  try {
    process.kill(-group, signal);
  } catch (error) {
    if (!hasCode(error, 'ESRCH')) console.error(`${signal} to process group ${group} failed:`, error);
  }
}
