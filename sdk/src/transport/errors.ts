// The one class of failures, and what is known of each. Owns which failures may be tried again.
import type { ErrorCode } from '../generated/raw/index.ts';

/**
 * Codes of failures that the SDK finds by itself:
 * `connection_failed`: no answer came, or not all of it. `timeout`: none in time. `invalid_answer`:
 * what came was no answer of Berth. `configuration`: the client was set up wrongly.
 * `command_failed`: see {@link CommandResult.orThrow}. `unexpected_status`: a sandbox came to
 * another status than was waited for. `stream_closed`: a stream was closed before its end.
 * `reader_too_slow`: more output came than is kept unread. `command_too_long`: the command of a
 * stream does not fit into a URL.
 */
export type LocalErrorCode =
  | 'connection_failed'
  | 'timeout'
  | 'invalid_answer'
  | 'configuration'
  | 'command_failed'
  | 'unexpected_status'
  | 'stream_closed'
  | 'reader_too_slow'
  | 'command_too_long';

/** What a {@link BerthError} is made of. */
export interface BerthErrorFields {
  code: ErrorCode | LocalErrorCode | (string & {});
  status?: number | undefined;
  requestId?: string | undefined;
  retryAfter?: number | undefined;
  retryable?: boolean;
  cause?: unknown;
}

/**
 * Every failure of a call, whether the service answered it or no answer came. Decide on {@link
 * code}, never on the message.
 */
export class BerthError extends Error {
  override readonly name: string = 'BerthError';
  /**
   * For programs: a code of the service, or one of {@link LocalErrorCode}. Further ones will come.
   */
  readonly code: ErrorCode | LocalErrorCode | (string & {});
  /** HTTP status of the answer; undefined when there was none. */
  readonly status: number | undefined;
  /** `x-request-id` of the answer: by it the operator finds the request in the log. */
  readonly requestId: string | undefined;
  /** Seconds after which the service asks to be tried again. */
  readonly retryAfter: number | undefined;
  /** Whether the same call may be made again without doing anything twice, and may then succeed. */
  readonly retryable: boolean;

  constructor(message: string, { code, status, requestId, retryAfter, retryable = false, cause }: BerthErrorFields) {
    super(message, cause === undefined ? undefined : { cause });
    this.code = code;
    this.status = status;
    this.requestId = requestId;
    this.retryAfter = retryAfter;
    this.retryable = retryable;
  }
}

/**
 * Statuses that pass by themselves: too many requests, and a service that is not there for the
 * moment.
 */
const PASSING: ReadonlySet<number> = new Set([429, 502, 503, 504]);

/** Codes that say that nothing was begun. */
const NOTHING_BEGUN: ReadonlySet<string> = new Set<ErrorCode>([
  'rate_limited',
  'too_many_connections',
  'sandbox_busy',
  'shutting_down',
  'insufficient_capacity',
]);

/**
 * Whether a call that was answered so may be made again. @param repeatable nothing is done twice by
 * making it twice
 */
export function mayRetry(status: number, code: string, repeatable: boolean): boolean {
  if (!PASSING.has(status)) return false;
  return repeatable || NOTHING_BEGUN.has(code);
}
