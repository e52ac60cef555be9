// A command whose response waits for the exit of its shell, not for the end of its output.
import { constants } from 'node:os';
import { TIMED_OUT_EXIT_CODE } from '@berth/protocol/guest-limits.ts';
import type { GuestExecResult } from '@berth/protocol/calls/exec.ts';
import type { ProcessEnd } from '../keeper/keeper.ts';

/** Timeout for a killed shell to exit (uninterruptible call); then the response is sent anyway. */
const GONE_DEADLINE_MS = 5_000;

/** Text of an output, and whether it was cut. */
type OutputText = { text: string; truncated: boolean };

const EMPTY: OutputText = { text: '', truncated: false };

interface RunningParts {
  kill(): void;
  output(stream: 'stdout' | 'stderr'): OutputText;
}

export class RunningCommand {
  /** Settles when the shell has exited, or 5 s after it was killed. Never rejects. */
  readonly result: Promise<GuestExecResult>;
  readonly #parts: RunningParts;
  readonly #resolve: (result: GuestExecResult) => void;
  #goneTimer: NodeJS.Timeout | undefined;
  #ended = false;

  constructor(parts: RunningParts) {
    this.#parts = parts;
    const { promise, resolve } = Promise.withResolvers<GuestExecResult>();
    this.result = promise;
    this.#resolve = resolve;
  }

  /** Kills the process group. No effect after the shell's exit. */
  kill(): void {
    if (this.#ended || this.#goneTimer !== undefined) return;

    this.#goneTimer = setTimeout(() => this.end(KILLED, ANY_LENGTH), GONE_DEADLINE_MS);
    this.#parts.kill();
  }

  /** `lengths` of its outputs, in bytes: an empty one is not looked for. */
  end({ code, signal, timedOut }: ProcessEnd, [out, err]: readonly number[]): void {
    if (this.#ended) return;

    this.#ended = true;
    clearTimeout(this.#goneTimer);
    const stdout = out === 0 ? EMPTY : this.#parts.output('stdout');
    const stderr = err === 0 ? EMPTY : this.#parts.output('stderr');
    // A shell that exited just as its timeout expired has not timed out.
    const isLate = timedOut && signal === KILLED.signal;
    this.#resolve({
      exitCode: isLate ? TIMED_OUT_EXIT_CODE : signal === 0 ? code : 128 + signal,
      stdout: stdout.text,
      stderr: stderr.text,
      truncated: stdout.truncated || stderr.truncated,
      timedOut: isLate,
    });
  }
}

/** Lengths of outputs that nobody knows. */
export const ANY_LENGTH: readonly number[] = [Infinity, Infinity];
/** The end of a command of which nobody knows how it ended. */
export const KILLED: ProcessEnd = { code: 0, signal: constants.signals.SIGKILL, timedOut: false };
