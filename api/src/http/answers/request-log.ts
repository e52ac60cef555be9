// The log line of every request. Its fields identify the caller and never contain input.
import type { ServerResponse } from 'node:http';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Logger } from 'pino';

/** Status in the log, a common convention, when the caller disconnected before the response. */
const CLIENT_CLOSED_REQUEST = 499;

interface Outcome {
  /** Status of the response, or 499 when the caller disconnected before it began. */
  status: number;
  /** Present only when true. */
  brokenOff?: true;
}

/** Outcome of a finished response. */
export function outcomeOf(response: ServerResponse): Outcome {
  if (response.writableFinished) return { status: response.statusCode };
  return { status: response.headersSent ? response.statusCode : CLIENT_CLOSED_REQUEST, brokenOff: true };
}

/** The log of a request. Fastify makes its children from the pino logger it was given. */
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
