// The log line of every request. Its fields tell who called, never what was sent.
import type { ServerResponse } from 'node:http';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Logger } from 'pino';

/** Status in the log, as common in the field, when the caller hung up before the response. */
const CALLER_LEFT = 499;

interface Outcome {
  /** Of the response, or 499 when the caller left before it began. */
  status: number;
  /** Present only when true. */
  brokenOff?: true;
}

/** Of a response that is over. */
export function outcomeOf(response: ServerResponse): Outcome {
  if (response.writableFinished) return { status: response.statusCode };
  return { status: response.headersSent ? response.statusCode : CALLER_LEFT, brokenOff: true };
}

/** The log of one request. The server is given a log of pino's, and makes its children. */
export function logOf(request: FastifyRequest): Logger {
  return request.log as Logger;
}

export function logRequest(request: FastifyRequest, reply: FastifyReply, { status, ...more }: Outcome): void {
  request.log.info(
    {
      method: request.method,
      path: request.routeOptions.url ?? 'unknown',
      status,
      ...more,
      ms: Math.round(reply.elapsedTime * 10) / 10,
    },
    'request',
  );
}
