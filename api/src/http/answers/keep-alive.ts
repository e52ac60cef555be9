// Keeps the connection of a long request alive: after a while without a result the headers are
// sent, then a space at each interval, then the JSON (white space before JSON is JSON). A failure
// after that cannot change the status any more: it writes the error envelope and breaks the
// connection off without the end of the body, so that no client takes it for a success.
import type { ServerResponse } from 'node:http';
import { EXEC_KEEPALIVE_MS } from '@berth/contract/route/limits.ts';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { envelope, logFailure, toCodedError } from './errors.ts';

export interface KeepAliveTimes {
  headersAfter: number;
  spaceEvery: number;
}

/**
 * Waits for the result. Returns it while the answer is still untouched; otherwise writes it here
 * and returns undefined, with the reply hijacked. Rejects as the result does while the answer is
 * untouched.
 */
export async function answerKeepingAlive(
  result: Promise<unknown>,
  status: number,
  request: FastifyRequest,
  reply: FastifyReply,
  times: KeepAliveTimes = EXEC_KEEPALIVE_MS,
): Promise<unknown> {
  let spaces: NodeJS.Timeout | undefined;
  const begin = (): void => {
    reply.hijack();
    reply.raw.writeHead(status, {
      ...(reply.getHeaders() as Record<string, string>),
      'content-type': 'application/json; charset=utf-8',
      // Proxies that gather answers would hold the spaces back.
      'x-accel-buffering': 'no',
    });
    reply.raw.write(' ');
    spaces = setInterval(() => {
      // A caller that reads nothing must not make the queue of spaces grow.
      if (!reply.raw.writableNeedDrain) reply.raw.write(' ');
    }, times.spaceEvery);
  };
  const timer = setTimeout(begin, times.headersAfter);
  try {
    const value = await result;
    if (!reply.sent) return value;
    reply.raw.end(JSON.stringify(value));
  } catch (error) {
    if (!reply.sent) throw error;
    const coded = toCodedError(error, request);
    logFailure(coded, request);
    request.errorCode = coded.code;
    await breakOff(reply.raw, JSON.stringify(envelope(coded.code, coded.message)));
  } finally {
    clearTimeout(timer);
    clearInterval(spaces);
  }
  return undefined;
}

function breakOff(response: ServerResponse, text: string): Promise<void> {
  return new Promise((resolve) => {
    response.once('close', resolve);
    response.write(text, () => response.destroy());
    if (response.destroyed) resolve();
  });
}
