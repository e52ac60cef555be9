// Failures that a person can do something about, and what each becomes: words on stderr, and an
// exit code.
import { OperatorFailure } from '@berth/machine/output/failure.ts';

/**
 * Exit codes of `berth` itself; `exec`, `run`, `shell` and `ssh` otherwise end with that of what
 * ran. README.md of this package has the table.
 */
export const EXIT = {
  ok: 0,
  /** The call failed or was refused. */
  failed: 1,
  /** Wrong words, options or values. */
  usage: 2,
  /** No credential, or one that is not taken any more. */
  signIn: 4,
  /** A command in a sandbox ran out of its time, as `timeout` of the coreutils says it. */
  timedOut: 124,
  /** A command in a sandbox could not be run, or nobody knows how it ended. */
  notRun: 125,
} as const;

/** 128 and the signal, as shells say it. */
export const EXIT_BY_SIGNAL = { SIGHUP: 129, SIGINT: 130, SIGPIPE: 141, SIGTERM: 143 } as const;

/** A failure in words for a person, what to do about it, and an exit code of its own. */
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

/** What was typed is wrong. Says what is allowed. */
export class UsageError extends CliFailure {
  constructor(message: string, options: { remedy?: string; cause?: unknown } = {}) {
    super(message, { ...options, exitCode: EXIT.usage });
  }
}
