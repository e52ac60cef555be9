// The one place where failures become HTTP: status, envelope, headers. A failure without a code is
// a bug: 500, a request id, a full log.
import { ERRORS, type ErrorCode, type ErrorEnvelope } from '@berth/contract/route/errors.ts';
import type { FastifyError, FastifyReply, FastifyRequest } from 'fastify';
import { CodedError } from '../../rules/coded-error.ts';

/** The caller closed its connection: nobody is there to be answered, and nothing went wrong. */
export class CallerGone extends Error {
  override readonly name = 'CallerGone';
}

export function envelope(code: ErrorCode, message: string): ErrorEnvelope {
  return { error: { message, code } };
}

/**
 * Any failure as a coded one. What it was is kept as its cause; a bug's message never reaches the
 * caller.
 */
export function toCodedError(error: unknown, request: FastifyRequest): CodedError {
  if (error instanceof CodedError) return error;
  const { code, statusCode } = error as Partial<FastifyError>;
  switch (code) {
    case 'FST_ERR_CTP_BODY_TOO_LARGE':
      return new CodedError(
        'payload_too_large',
        `the body is longer than the ${request.routeOptions.bodyLimit} bytes that this route takes`,
      );
    case 'FST_ERR_CTP_INVALID_MEDIA_TYPE': {
      const given = request.headers['content-type'];
      const what = given === undefined ? 'has no content type' : `has the content type ${given}`;
      return new CodedError(
        'unsupported_media_type',
        `the body ${what}; send the header Content-Type: application/json`,
      );
    }
    case 'FST_ERR_CTP_INVALID_CONTENT_LENGTH':
      return new CodedError('invalid_request', 'the body is not as long as the header Content-Length says');
    case 'FST_ERR_BAD_URL':
      return new CodedError('invalid_request', 'the path holds a percent sign that begins no valid escape');
    default:
  }
  if (statusCode !== undefined && statusCode >= 400 && statusCode < 500) {
    return new CodedError('invalid_request', error instanceof Error ? error.message : 'the request could not be read', {
      cause: error,
    });
  }

  return new CodedError('internal', `a fault in the service; the request's id is ${request.id}`, { cause: error });
}

/**
 * Logs a failure as it deserves: bugs and faults of other parts in full, callers' mistakes not at
 * all (the request's own line has the code).
 */
export function logFailure(error: CodedError, request: FastifyRequest): void {
  if (error.cause instanceof CallerGone) return;
  if (error.code === 'internal')
    request.log.error({ err: error.cause ?? error }, 'a request failed by a fault of the service');
  else if (ERRORS[error.code].status >= 500)
    request.log.warn({ err: error.cause ?? error, code: error.code }, 'a request failed');
}

/** Answers with a failure. */
export function sendFailure(error: unknown, request: FastifyRequest, reply: FastifyReply): FastifyReply {
  const coded = toCodedError(error, request);
  logFailure(coded, request);
  if (coded.code === 'unauthenticated') void reply.header('www-authenticate', 'Bearer');
  if (coded.retryAfterSeconds !== undefined) void reply.header('retry-after', String(coded.retryAfterSeconds));
  request.errorCode = coded.code;
  return reply.code(ERRORS[coded.code].status).send(envelope(coded.code, coded.message));
}
