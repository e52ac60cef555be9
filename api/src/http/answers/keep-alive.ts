// Keeps the connection of a long call alive: sends the headers, then a space per interval, then the
// JSON (leading white space is valid JSON). A later failure cannot change the status. The error
// envelope is then written and the connection broken off before the end of the body, so no client
// sees a success.
import type { ServerResponse } from 'node:http';
import { EXEC_KEEPALIVE_MS } from '@berth/contract/route/limits.ts';
import type { FastifyReply } from 'fastify';
import type { RouteResponse } from '../../call/call-route.ts';

export interface KeepAliveTimes {
  headersAfter: number;
  spaceEvery: number;
}

export class KeepAlive {
  readonly #reply: FastifyReply;
  readonly #status: number;
  readonly #times: KeepAliveTimes;
  #headers: NodeJS.Timeout | undefined;
  #spaces: NodeJS.Timeout | undefined;

  /** @param status of a successful response */
  constructor(reply: FastifyReply, status: number, times: KeepAliveTimes = EXEC_KEEPALIVE_MS) {
    this.#reply = reply;
    this.#status = status;
    this.#times = times;
  }

  start(headers: Readonly<Record<string, string>>): void {
    this.#headers = setTimeout(() => this.#sendHeaders(headers), this.#times.headersAfter);
  }

  /** Ends a response that has begun; returns false when nothing was sent yet. */
  async end({ status, body }: RouteResponse): Promise<boolean> {
    clearTimeout(this.#headers);
    clearInterval(this.#spaces);
    if (this.#spaces === undefined) return false;
    const { raw } = this.#reply;
    if (status === this.#status) raw.end(JSON.stringify(body));
    else await truncate(raw, JSON.stringify(body));
    return true;
  }

  #sendHeaders(headers: Readonly<Record<string, string>>): void {
    const { raw } = this.#reply;
    this.#reply.hijack();
    raw.writeHead(this.#status, {
      ...(this.#reply.getHeaders() as Record<string, string>),
      ...headers,
      'content-type': 'application/json; charset=utf-8',
      // Keeps buffering proxies from holding the spaces back.
      'x-accel-buffering': 'no',
    });
    raw.write(' ');
    this.#spaces = setInterval(() => {
      // Do not queue spaces for a caller that does not read.
      if (!raw.writableNeedDrain) raw.write(' ');
    }, this.#times.spaceEvery);
  }
}

function truncate(response: ServerResponse, text: string): Promise<void> {
  return new Promise((resolve) => {
    response.once('close', resolve);
    response.write(text, () => response.destroy());
    if (response.destroyed) resolve();
  });
}
