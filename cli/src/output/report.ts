// Turns failures into lines of stderr and exit codes; the only place that does.
import { OperatorFailure } from '@berth/machine/output/failure.ts';
import { BerthError } from '@berth/sdk';
import { REMEDIES } from '@berth/sdk/remedies';
import { CliFailure, EXIT, EXIT_BY_SIGNAL, UsageError } from './failure.ts';
import { plainText } from './plain-text.ts';

/** Remedies of errors that the SDK detects; those of the API are in the contract. */
const OWN_REMEDIES: Readonly<Record<string, string>> = {
  connection_failed: 'check the URL of the API: --url, BERTH_URL or the profile',
  invalid_answer: 'check the URL of the API: --url, BERTH_URL or the profile',
};

/** Remedies that only refer to the message, or to the time in the next line. */
const SAID = /the message (?:names|says)|Retry-After/;

/** In the form of messages of berth: without a capital and a full stop. */
function remedyOf(code: string): string | undefined {
  if (!Object.hasOwn(REMEDIES, code)) return OWN_REMEDIES[code];
  const sentence = REMEDIES[code as keyof typeof REMEDIES];
  return SAID.test(sentence) ? undefined : sentence.slice(0, 1).toLowerCase() + sentence.slice(1, -1);
}

const SIGNAL_CODES: ReadonlySet<number> = new Set(Object.values(EXIT_BY_SIGNAL));

export interface FailureReport {
  exitCode: number;
  lines: string[];
}

/** Context of a failure. */
export interface FailureContext {
  /** Failed item of a command with several: the id of a sandbox. */
  about?: string | undefined;
  /** Exit code instead of those in EXIT, except for usage errors and signals. */
  failureExit?: number | undefined;
}

export function reportOf(error: unknown, { about, failureExit }: FailureContext = {}): FailureReport {
  const { exitCode, lines } = describeError(error);
  // The reader of the output exited, such as `head`: nothing to report.
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

function describeError(error: unknown): FailureReport {
  if (error instanceof OperatorFailure) {
    const exitCode = error instanceof CliFailure ? error.exitCode : EXIT.failed;
    return { exitCode, lines: [error.message, ...(error.remedy === undefined ? [] : [`  ${error.remedy}`])] };
  }
  if (error instanceof BerthError) return describeRefusal(error);
  return {
    exitCode: EXIT.failed,
    lines: [`this is a bug: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`],
  };
}

function describeRefusal(error: BerthError): FailureReport {
  // The code would repeat the message.
  const code = error.code === 'stream_closed' ? '' : ` (${plainText(error.code)})`;
  const lines = [`${plainText(error.message)}${code}`];
  const remedy = remedyOf(error.code);
  if (remedy !== undefined) lines.push(`  ${remedy}`);
  if (error.retryAfter !== undefined) lines.push(`  try again in ${error.retryAfter} s`);
  // A refused port is the tenant's program.
  if (error.requestId !== undefined && (error.status ?? 0) >= 500 && error.code !== 'port_refused')
    lines.push(`  request ID for the operator: ${plainText(error.requestId)}`);
  return { exitCode: error.status === 401 ? EXIT.signIn : EXIT.failed, lines };
}
