// The line of the log that every request leaves. Tells who called, never what was sent.
import type { FastifyReply, FastifyRequest } from 'fastify';

export function logRequest(
  request: FastifyRequest,
  reply: FastifyReply,
  { status, brokenOff }: { status: number; brokenOff: boolean },
): void {
  request.log.info(
    {
      method: request.method,
      path: request.routeOptions.url ?? 'unknown',
      status,
      code: request.errorCode,
      caller: request.actor?.id,
      callerKind: request.actor?.kind,
      org: request.orgId ?? (request.actor?.kind === 'api_key' ? request.actor.orgId : undefined),
      ...(brokenOff ? { brokenOff } : {}),
      ms: Math.round(reply.elapsedTime * 10) / 10,
    },
    'request',
  );
}
