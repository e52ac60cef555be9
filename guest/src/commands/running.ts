// One command that runs: its output, its time and its end. The answer waits for the shell, never
// for the pipes.
import type { ChildProcess } from 'node:child_process';
import { constants } from 'node:os';
import type { GuestExecResult } from '@berth/protocol/calls/exec.ts';
import type { Output } from './output.ts';

const TIMED_OUT_EXIT_CODE = 124;
/**
 * How long a killed shell may take to be gone (it may be inside an uninterruptible call) before the
 * answer is given without it.
 */
const GONE_DEADLINE_MS = 5_000;

export class RunningCommand {
  /** Settles when the shell has ended, or did not end within 5 s of being killed. Never rejects. */
  readonly result: Promise<GuestExecResult>;
  readonly stdout: Output;
  readonly stderr: Output;
  readonly #child: ChildProcess;
  readonly #timer: NodeJS.Timeout;
  #goneTimer: NodeJS.Timeout | undefined;
  #resolve: (result: GuestExecResult) => void;
  #timedOut = false;
  #ended = false;

  /** `child` has a process group of its own. */
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

  /**
   * Ends the whole process group; no effect once the shell has ended: what it left running goes on,
   * and its group's id may be another's.
   */
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
    // A shell that ended by itself just as its time was over did not time out.
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

/**
 * Kills every process of the group whose leader was not waited for yet, so that the id is still the
 * group's.
 */
export function killGroup(leader: number | undefined): void {
  if (leader !== undefined) signalGroup(leader, 'SIGKILL');
}

/** Sends a signal to every process of the group, as far as there is one. */
export function signalGroup(group: number, signal: NodeJS.Signals): void {
  // 0 and -1 are not groups to the kernel but nearly everybody.
  if (group <= 1) throw new Error(`${group} is no process group of a command`);

  try {
    process.kill(-group, signal);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH')
      console.error(`${signal} to process group ${group} failed:`, error);
  }
}
