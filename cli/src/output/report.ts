// How a failure is told: what went wrong, what to do about it, and the exit code. The only place
// that turns failures into words and codes.
import { OperatorFailure } from '@berth/machine/output/failure.ts';
import { BerthError } from '@berth/sdk';
import { CliFailure, EXIT, EXIT_BY_SIGNAL, UsageError } from './failure.ts';
import { plainText } from './plain-text.ts';

/** What the codes of the API ask a person to do. */
const REMEDIES: Readonly<Record<string, string>> = {
  unauthenticated: 'berth login signs in; BERTH_API_KEY, when it is set, is used instead',
  auth_kind_not_allowed: 'berth login signs in as a person, where a key cannot do it',
  permission_denied: 'ask an admin of the org for it, or use another key (berth whoami says who you are)',
  rate_limited: 'wait, then try again',
  connection_failed: '--url, BERTH_URL or the profile says where the API is',
  invalid_answer: '--url, BERTH_URL or the profile says where the API is',
};

const SIGNAL_CODES: ReadonlySet<number> = new Set(Object.values(EXIT_BY_SIGNAL));

export interface Told {
  exitCode: number;
  lines: string[];
}

/** What is known of where it failed. */
export interface FailedIn {
  /** What the failure is of, where a command has several: the id of a sandbox. */
  about?: string | undefined;
  /**
   * The exit code of what failed and was neither typed wrongly nor ended by a signal, instead of
   * those of EXIT.
   */
  failureExit?: number | undefined;
}

export function tell(error: unknown, { about, failureExit }: FailedIn = {}): Told {
  const { exitCode, lines } = tellOne(error);
  // Whoever read has gone, as `head` does: there is nothing to tell.
  if (exitCode === EXIT_BY_SIGNAL.SIGPIPE) return { exitCode, lines: [] };
  const own =
    failureExit === undefined ||
    error instanceof UsageError ||
    (error instanceof CliFailure && SIGNAL_CODES.has(exitCode));
  return {
    exitCode: own ? exitCode : failureExit,
    lines: lines.map((line, at) => (at === 0 ? `berth: ${about === undefined ? '' : `${about}: `}${line}` : line)),
  };
}

function tellOne(error: unknown): Told {
  if (error instanceof OperatorFailure) {
    const exitCode = error instanceof CliFailure ? error.exitCode : EXIT.failed;
    return { exitCode, lines: [error.message, ...(error.remedy === undefined ? [] : [`  ${error.remedy}`])] };
  }
  if (error instanceof BerthError) return tellRefusal(error);
  return {
    exitCode: EXIT.failed,
    lines: [`this is a bug: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`],
  };
}

function tellRefusal(error: BerthError): Told {
  // The message of a stream says all.
  const code = error.code === 'stream_closed' ? '' : ` (${plainText(error.code)})`;
  const lines = [`${plainText(error.message)}${code}`];
  const remedy = REMEDIES[error.code];
  if (remedy !== undefined) lines.push(`  ${remedy}`);
  if (error.retryAfter !== undefined) lines.push(`  try again in ${error.retryAfter} s`);
  if (error.requestId !== undefined && (error.status ?? 0) >= 500)
    lines.push(`  the operator finds it in the log as ${plainText(error.requestId)}`);
  return { exitCode: error.status === 401 ? EXIT.signIn : EXIT.failed, lines };
}
