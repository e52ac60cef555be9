// The error class of the SDK, and the rules for retries.
import type { ErrorCode } from '../generated/raw/index.ts';

/**
 * Codes of errors detected by the SDK.
 * - `connection_failed`: no complete response
 * - `timeout`: no response in time
 * - `invalid_answer`: a response that is not Berth's
 * - `configuration`: invalid options of the client or arguments of a call
 * - `command_failed`: see {@link CommandResult.orThrow}
 * - `unexpected_status`: a sandbox settled in another status
 * - `process_exited`: the process that {@link SandboxStreams.waitForPort} watched has ended
 * - `preview_link_inactive`: a preview link without URL does not open
 * - `stream_closed`: a stream was closed early
 * - `reader_too_slow`: too much unread output
 * - `command_too_long`: the command of a stream does not fit into a URL
 */
export type LocalErrorCode =
  | 'connection_failed'
  | 'timeout'
  | 'invalid_answer'
  | 'configuration'
  | 'command_failed'
  | 'unexpected_status'
  | 'process_exited'
  | 'preview_link_inactive'
  | 'stream_closed'
  | 'reader_too_slow'
  | 'command_too_long';

export interface BerthErrorFields {
  code: ErrorCode | LocalErrorCode | (string & {});
  status?: number | undefined;
  requestId?: string | undefined;
  retryAfter?: number | undefined;
  retryable?: boolean;
  sandboxId?: string | undefined;
  unsent?: boolean;
  field?: string | undefined;
  turnId?: string | undefined;
  requestKey?: string | undefined;
  cause?: unknown;
}

/** Error of every failed call. Test {@link code}, never the message. */
export class BerthError extends Error {
  override readonly name: string = 'BerthError';
  /** A code of the service or a {@link LocalErrorCode}. Later versions may add codes. */
  readonly code: ErrorCode | LocalErrorCode | (string & {});
  /** HTTP status; undefined without a response. 200 if a long command failed after its headers. */
  readonly status: number | undefined;
  /** `x-request-id` of the response, for the operator's logs. */
  readonly requestId: string | undefined;
  /** From `Retry-After`, in seconds. */
  readonly retryAfter: number | undefined;
  /** Whether a retry is safe and may succeed. */
  readonly retryable: boolean;
  /** Whether the request was never sent, and so had no effect: no connection was made. */
  readonly unsent: boolean;
  /**
   * Sandbox of a failed transition, which may still be in progress. After a failed create, the
   * sandbox that it left, if any.
   */
  readonly sandboxId: string | undefined;
  /** Path of the first field at fault, such as `body.name`, if the error is about one. */
  readonly field: string | undefined;
  /** Turn of a message whose delivery is unknown (`message_delivery_uncertain`). */
  readonly turnId: string | undefined;
  /** Key of the message that failed: send it again with this key and the same text. */
  readonly requestKey: string | undefined;

  constructor(message: string, fields: BerthErrorFields) {
    const { code, status, requestId, retryAfter, retryable = false, unsent = false, cause } = fields;
    super(message, cause === undefined ? undefined : { cause });
    this.sandboxId = fields.sandboxId;
    this.field = fields.field;
    this.turnId = fields.turnId;
    this.requestKey = fields.requestKey;
    this.unsent = unsent;
    this.code = code;
    this.status = status;
    this.requestId = requestId;
    this.retryAfter = retryAfter;
    this.retryable = retryable;
  }
}

/** A copy of the error with other fields. */
export function errorWith(
  error: BerthError,
  changes: Partial<BerthErrorFields>,
  message: string = error.message,
): BerthError {
  const fields: BerthErrorFields = error;
  return new BerthError(message, { ...fields, cause: error.cause, ...changes });
}

/** Statuses of temporary failures. */
const PASSING: ReadonlySet<number> = new Set([429, 502, 503, 504]);

/** Codes of requests that had no effect. */
const NOTHING_BEGUN: ReadonlySet<string> = new Set<ErrorCode>([
  'rate_limited',
  'too_many_connections',
  'too_much_in_flight',
  'sandbox_busy',
  'shutting_down',
  'insufficient_capacity',
  'process_limit',
]);

/**
 * Reports whether a retry is safe and may succeed. @param repeatable repeating the request has no
 * second effect
 */
export function mayRetry(status: number, code: string, repeatable: boolean): boolean {
  if (!PASSING.has(status)) return false;
  return repeatable || NOTHING_BEGUN.has(code);
}
