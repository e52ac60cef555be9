import type { FastifyReply } from 'fastify';
import { CallerGone } from '../../call/failure.ts';

/** Aborts when the caller's connection closes before the response was written. */
export function abortWhenGone(reply: FastifyReply): AbortSignal {
  const gone = new AbortController();
  const closed = (): void => {
    if (!reply.raw.writableFinished) gone.abort(new CallerGone('the caller closed its connection'));
  };
  if (reply.raw.closed || reply.raw.destroyed) closed();
  else reply.raw.once('close', closed);
  return gone.signal;
}
