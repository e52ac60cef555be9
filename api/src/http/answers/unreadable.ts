// Responds with the error envelope to requests that are not HTTP, or whose head is incomplete or
// too long, and closes the connection. No route sees them.
import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Logger } from 'pino';
import { statusOf } from '@berth/contract/route/route.ts';
import { envelope } from '../../call/failure.ts';
import { newRequestId } from './request-id.ts';

const REASONS = {
  request_header_too_large: 'Request Header Fields Too Large',
  invalid_request: 'Bad Request',
} as const;

/** Responds on the socket itself, with the given headers and an `x-request-id`. */
export function respondUnreadable(
  error: NodeJS.ErrnoException,
  socket: Socket,
  headers: Readonly<Record<string, string>>,
  log: Logger,
): void {
  if (error.code === 'ECONNRESET' || !socket.writable || hasResponseInFlight(socket)) {
    socket.destroy();
    return;
  }
  const code = error.code === 'HPE_HEADER_OVERFLOW' ? 'request_header_too_large' : 'invalid_request';
  const message =
    code === 'request_header_too_large'
      ? 'the headers are longer than 16 KiB'
      : 'the request is not valid HTTP/1.1, or did not arrive in time';
  const text = JSON.stringify(envelope(code, message));
  const reqId = newRequestId();
  const all = {
    ...headers,
    'x-request-id': reqId,
    'content-type': 'application/json; charset=utf-8',
    'content-length': String(Buffer.byteLength(text)),
    connection: 'close',
  };
  const head = [
    `HTTP/1.1 ${statusOf(code)} ${REASONS[code]}`,
    ...Object.entries(all).map(([name, value]) => `${name}: ${value}`),
  ];
  // Never log the input: it may hold a token.
  log.info({ reqId, status: statusOf(code), code, why: error.code }, 'an unreadable request');
  socket.write(`${head.join('\r\n')}\r\n\r\n${text}`);
  socket.destroySoon();
}

/**
 * True if the response in flight belongs to an earlier request, or has begun: a response written
 * now would be taken for it or a part of it. Node keeps it on the socket.
 */
function hasResponseInFlight(socket: Socket): boolean {
  const answer = (socket as Socket & { _httpMessage?: ServerResponse | null })._httpMessage;
  return answer !== undefined && answer !== null && (answer.headersSent || answer.req.complete);
}
