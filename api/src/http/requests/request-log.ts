// The line of the log that every request leaves. Tells who called, never what was sent.
import type { ServerResponse } from 'node:http';
import type { FastifyReply, FastifyRequest } from 'fastify';

/**
 * What a line says, as others in the field do, of a caller who hung up before there was an answer.
 */
const CALLER_LEFT = 499;

export interface Outcome {
  /** The answer's, or 499 when the caller left before it began. */
  status: number;
  /** There is only when it is true. */
  brokenOff?: true;
}

/** Of an answer that is over. */
export function outcomeOf(response: ServerResponse): Outcome {
  if (response.writableFinished) return { status: response.statusCode };
  return { status: response.headersSent ? response.statusCode : CALLER_LEFT, brokenOff: true };
}

export function logRequest(request: FastifyRequest, reply: FastifyReply, { status, ...more }: Outcome): void {
  request.log.info(
    {
      method: request.method,
      path: request.routeOptions.url ?? 'unknown',
      status,
      code: request.errorCode,
      caller: request.actor?.id,
      callerKind: request.actor?.kind,
      org: request.orgId ?? (request.actor?.kind === 'api_key' ? request.actor.orgId : undefined),
      ...more,
      ms: Math.round(reply.elapsedTime * 10) / 10,
    },
    'request',
  );
}
