// Maps failures to responses: status, headers, envelope. A failure without a code is a bug: it is
// `internal`, and logged in full.
import { ERRORS, type ErrorCode, type ErrorEnvelope } from '@berth/contract/route/errors.ts';
import type { Logger } from 'pino';
import { CodedError } from '../rules/coded-error.ts';

/** The caller closed its connection: nothing can receive the response, and nothing failed. */
export class CallerGone extends Error {
  override readonly name = 'CallerGone';
}

interface FailureResponse {
  status: number;
  headers: Readonly<Record<string, string>>;
  body: ErrorEnvelope;
}

export function envelope(
  code: ErrorCode,
  message: string,
  { field, turnId }: { field?: string | undefined; turnId?: string | undefined } = {},
): ErrorEnvelope {
  const about = { ...(field === undefined ? {} : { field }), ...(turnId === undefined ? {} : { turnId }) };
  return { error: { message, code, ...about } };
}

/**
 * Converts any failure to a coded error with the original as its cause. A bug's message never
 * reaches the caller.
 */
export function toCodedError(error: unknown, requestId: string): CodedError {
  if (error instanceof CodedError) return error;
  return new CodedError('internal', `internal error; the request id ${requestId} finds it in the service's log`, {
    cause: error,
  });
}

/**
 * Logs faults of the service and of its dependencies in full, but no errors of callers. The code
 * becomes a field of all later lines of this log.
 */
export function logFailure(error: CodedError, log: Logger): void {
  if (!(error.cause instanceof CallerGone)) {
    if (error.code === 'internal') log.error({ err: error.cause ?? error }, 'request failed: internal error');
    else if (ERRORS[error.code].status >= 500)
      log.warn({ err: error.cause ?? error, code: error.code }, 'request failed');
  }
  log.setBindings({ code: error.code });
}

export function failureResponse(error: CodedError): FailureResponse {
  const { code, message, retryAfterSeconds, contentRange, field, turnId } = error;
  return {
    status: ERRORS[code].status,
    headers: {
      ...(code === 'unauthenticated' ? { 'www-authenticate': 'Bearer' } : {}),
      ...(contentRange === undefined ? {} : { 'content-range': contentRange }),
      ...(retryAfterSeconds === undefined ? {} : { 'retry-after': String(retryAfterSeconds) }),
    },
    body: envelope(code, message, { field, turnId }),
  };
}
