// An expected failure: a code of the contract's table and a message for people.
// http/answers/errors.ts maps it to HTTP.
import type { ErrorCode } from '@berth/contract/route/errors.ts';

export class CodedError extends Error {
  override readonly name = 'CodedError';
  readonly code: ErrorCode;
  /** Sent as `Retry-After`. */
  readonly retryAfterSeconds: number | undefined;
  /** Sent as `Content-Range`. */
  readonly contentRange: string | undefined;
  /** Sent in the envelope. */
  readonly turnId: string | undefined;
  /** Path of the field at fault, such as `body.name`; sent in the envelope. */
  readonly field: string | undefined;

  /** The message states the fault, its place and the allowed values. */
  constructor(
    code: ErrorCode,
    message: string,
    options: {
      retryAfterSeconds?: number;
      contentRange?: string;
      turnId?: string;
      field?: string;
      cause?: unknown;
    } = {},
  ) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.code = code;
    this.retryAfterSeconds = options.retryAfterSeconds;
    this.contentRange = options.contentRange;
    this.turnId = options.turnId;
    this.field = options.field;
  }
}

/** `invalid_request` about a field; the rest of the message follows its path. */
export function invalidField(field: string, rest: string): CodedError {
  return new CodedError('invalid_request', `${field} ${rest}`, { field });
}
