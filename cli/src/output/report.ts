// Turns failures into lines of stderr and exit codes; the only place that does.
import { OperatorFailure } from '@berth/machine/output/failure.ts';
import { BerthError } from '@berth/sdk';
import { shellWord } from '@berth/machine/output/command-hint.ts';
import { REMEDIES } from '@berth/sdk/remedies';
import { CliFailure, EXIT, EXIT_BY_SIGNAL, UsageError } from './failure.ts';
import { addressRemedy } from './address-remedy.ts';
import { plainText } from './plain-text.ts';

/** Remedies that only refer to the message, or to the time in the next line. */
const SAID = /the message (?:names|says)|Retry-After/;

/** In the form of messages of berth: without a capital and a full stop. */
function remedyOf({ code, message }: BerthError, call: CallContext | undefined): string | undefined {
  if (code === 'connection_failed' || code === 'invalid_answer')
    return addressRemedy(call?.url(), code === 'connection_failed');
  if (code === 'sandbox_state_conflict' && /\bsandbox is failed\b/.test(message)) {
    const sandbox = call?.sandbox === undefined ? 'SANDBOX' : shellWord(plainText(call.sandbox));
    return `berth logs ${sandbox} shows why; berth sandbox wake ${sandbox} starts it if its disk remains`;
  }
  if (!Object.hasOwn(REMEDIES, code)) return undefined;
  const sentence = REMEDIES[code as keyof typeof REMEDIES];
  return SAID.test(sentence) ? undefined : sentence.slice(0, 1).toLowerCase() + sentence.slice(1, -1);
}

const SIGNAL_CODES: ReadonlySet<number> = new Set(Object.values(EXIT_BY_SIGNAL));

export interface FailureReport {
  exitCode: number;
  lines: string[];
}

/** The call of a command that failed. */
export interface CallContext {
  /** Option or argument of the command that sets a field such as `body.name`. */
  fieldName: (field: string) => string | undefined;
  /** The sandbox as typed. */
  sandbox: string | undefined;
  /** URL of the API, once known. */
  url: () => string | undefined;
}

/** Context of a failure. */
export interface FailureContext {
  call?: CallContext | undefined;
  /** Failed item of a command with several: the id of a sandbox. */
  about?: string | undefined;
  /** Exit code instead of those in EXIT, except for usage errors and signals. */
  failureExit?: number | undefined;
}

export function reportOf(error: unknown, { about, failureExit, call }: FailureContext = {}): FailureReport {
  const { exitCode, lines } = describeError(error, sandboxOf(call, about));
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

/** The call, with the sandbox that failed of several. */
function sandboxOf(call: CallContext | undefined, about: string | undefined): CallContext | undefined {
  return call !== undefined && about?.startsWith('sbx_') === true ? { ...call, sandbox: about } : call;
}

function describeError(error: unknown, call: CallContext | undefined): FailureReport {
  if (error instanceof OperatorFailure) {
    const exitCode = error instanceof CliFailure ? error.exitCode : EXIT.failed;
    return { exitCode, lines: [error.message, ...(error.remedy === undefined ? [] : [`  ${error.remedy}`])] };
  }
  if (error instanceof BerthError) return describeRefusal(error, call);
  return {
    exitCode: EXIT.failed,
    lines: [`this is a bug: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`],
  };
}

/** Path of a field in messages of the API; the name of a map's key may follow it. */
const FIELD = /\b(?:body|query)\.[A-Za-z]\w*(?:\.[\w-]+)*/g;

/** Field of an ensured sandbox, with its value. */
const DIFFERENCE = /(?<=[:;] )[a-z]+(?= is )/gi;

/** Names the options and arguments of the command instead of the fields that they set. */
function inOptions({ code, message }: BerthError, { fieldName }: CallContext): string {
  const named = message
    .replaceAll(FIELD, (field) => fieldName(field) ?? field)
    .replaceAll(DIFFERENCE, (field) => (code === 'sandbox_differs' ? (fieldName(field) ?? field) : field));
  return named === message ? message : named.replaceAll(' (field name)', ' (name)');
}

function describeRefusal(error: BerthError, call: CallContext | undefined): FailureReport {
  // The code would repeat the message.
  const code = error.code === 'stream_closed' ? '' : ` (${plainText(error.code)})`;
  const message = call === undefined ? error.message : inOptions(error, call);
  const lines = [`${plainText(message)}${code}`];
  // Refused before it had an effect.
  const isOfOption = error.code === 'invalid_request' && message !== error.message;
  const remedy = remedyOf(error, call);
  if (remedy !== undefined) lines.push(`  ${remedy}`);
  if (error.retryAfter !== undefined) lines.push(`  try again in ${error.retryAfter} s`);
  // A refused port is the tenant's program.
  if (error.requestId !== undefined && (error.status ?? 0) >= 500 && error.code !== 'port_refused')
    lines.push(`  request ID for the operator: ${plainText(error.requestId)}`);
  return { exitCode: error.status === 401 ? EXIT.signIn : isOfOption ? EXIT.usage : EXIT.failed, lines };
}
