// Failures with a message for the user and an exit code.
import { OperatorFailure } from '@berth/machine/output/failure.ts';

/**
 * Exit codes of berth, as listed in README.md. `exec`, `run`, `attach`, `shell` and `ssh` otherwise
 * pass on the code of the remote program.
 */
export const EXIT = {
  ok: 0,
  /** The call failed or was rejected. */
  failed: 1,
  /** Invalid words, options or values. */
  usage: 2,
  /** `agent send --wait`, `agent log --follow`: the agent waits for an answer. */
  needsYou: 3,
  /** Missing or rejected credential. */
  signIn: 4,
  /** The turn of an agent failed. */
  turnFailed: 5,
  /** The turn of an agent was interrupted or canceled. */
  turnCanceled: 6,
  /** A message to an agent may have been delivered. */
  uncertain: 7,
  /** `sandbox wait`: the sandbox settled in another status. */
  settledElsewhere: 8,
  /** A command in a sandbox or a wait timed out, as in timeout(1). */
  timedOut: 124,
  /** A command in a sandbox could not run, or its exit code is unknown. */
  notRun: 125,
} as const;

/** 128 + signal number, as in shells. */
export const EXIT_BY_SIGNAL = { SIGHUP: 129, SIGINT: 130, SIGPIPE: 141, SIGTERM: 143 } as const;

/** A failure with an optional remedy and an exit code. */
export class CliFailure extends OperatorFailure {
  readonly exitCode: number;

  constructor(
    message: string,
    { exitCode = EXIT.failed, ...options }: { remedy?: string; cause?: unknown; exitCode?: number } = {},
  ) {
    super(message, options);
    this.exitCode = exitCode;
  }
}

/** Invalid input. The message names the allowed values. */
export class UsageError extends CliFailure {
  constructor(message: string, options: { remedy?: string; cause?: unknown } = {}) {
    super(message, { ...options, exitCode: EXIT.usage });
  }
}
