// Answers of the daemon's HTTP: JSON, and the one place where a failure becomes a status and a
// body.
import type { ServerResponse } from 'node:http';
import { HOST_ERRORS, type HostErrorBody } from '@berth/protocol/host.ts';
import type { Logger } from 'pino';
import { HostError } from '../vm/host-error.ts';

export function answerJson(response: ServerResponse, status: number, value: unknown): void {
  const body = Buffer.from(JSON.stringify(value));
  response.writeHead(status, { 'content-type': 'application/json', 'content-length': body.length });
  response.end(body);
}

/**
 * A bug becomes a 500 that says nothing of it; the log has all. When headers are out the connection
 * is cut, so that nobody takes half an answer for one.
 */
export function answerError(response: ServerResponse, error: unknown, log: Logger): void {
  if (response.headersSent) {
    log.warn({ err: error }, 'an answer broke off');
    response.destroy();
    return;
  }
  const body = errorBody(error, log);
  if (!response.req.complete) {
    // The rest of a body that nobody will read must not be taken for the next request.
    response.setHeader('connection', 'close');
  }
  answerJson(response, HOST_ERRORS[body.error.code], body);
}

/** What the caller is told of a failure. */
export function errorBody(error: unknown, log: Logger): HostErrorBody {
  if (!(error instanceof HostError) || error.code === 'internal') log.error({ err: error }, 'a call failed');

  const known =
    error instanceof HostError ? error : new HostError('internal', 'the host daemon failed; its log says why');
  return {
    error: {
      code: known.code,
      message: known.message,
      ...(known.shortage === undefined ? {} : { shortage: known.shortage }),
      ...(known.errno === undefined ? {} : { errno: known.errno }),
    },
  };
}
