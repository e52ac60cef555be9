// Failures over HTTP: converts errors of the server itself to coded errors, like those of calls.
import type { FastifyError, FastifyReply, FastifyRequest } from 'fastify';
import { failureResponse, logFailure, toCodedError } from '../../call/failure.ts';
import { CodedError } from '../../rules/coded-error.ts';
import { logOf } from './request-log.ts';

export function bodyTooLarge(limitBytes: number): CodedError {
  return new CodedError('payload_too_large', `the body exceeds this route's limit of ${limitBytes} bytes`);
}

export function notJson(contentType: string | undefined): CodedError {
  return notOfType(contentType, 'application/json');
}

export function notBytes(contentType: string | undefined): CodedError {
  return notOfType(contentType, 'application/octet-stream');
}

function notOfType(contentType: string | undefined, wanted: string): CodedError {
  const what = contentType === undefined ? 'has no content type' : `has the content type ${contentType}`;
  return new CodedError('unsupported_media_type', `the body ${what}; send the header Content-Type: ${wanted}`);
}

/** Converts any failure to a coded error and logs it. */
export function failureOf(error: unknown, request: FastifyRequest): CodedError {
  const coded = codedByServer(error, request) ?? toCodedError(error, request.id);
  logFailure(coded, logOf(request));
  return coded;
}

export function sendFailure(error: unknown, request: FastifyRequest, reply: FastifyReply): FastifyReply {
  const { status, headers, body } = failureResponse(failureOf(error, request));
  return reply.code(status).headers(headers).send(body);
}

/** Errors of the framework, and of Node's parser; null for any other. */
function codedByServer(error: unknown, request: FastifyRequest): CodedError | null {
  if (error instanceof CodedError) return error;
  const { code, statusCode } = error as Partial<FastifyError>;
  switch (code) {
    case 'FST_ERR_CTP_BODY_TOO_LARGE':
      return bodyTooLarge(request.routeOptions.bodyLimit);
    case 'FST_ERR_CTP_INVALID_MEDIA_TYPE':
      return notJson(request.headers['content-type']);
    case 'FST_ERR_CTP_INVALID_CONTENT_LENGTH':
      return new CodedError('invalid_request', "the body's length differs from the header Content-Length");
    case 'FST_ERR_BAD_URL':
      return new CodedError('invalid_request', 'the path contains an invalid percent escape');
    default:
  }
  if (statusCode === undefined || statusCode < 400 || statusCode >= 500) return null;
  const message = error instanceof Error ? error.message : 'the request could not be read';
  return new CodedError('invalid_request', message, { cause: error });
}
