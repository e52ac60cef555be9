// Keeps the connection of a long call alive: sends the headers, then a space per interval, then the
// JSON (leading white space is valid JSON). A later failure cannot change the status. The
// connection then breaks before the end of the body, so that every HTTP client fails; the error
// envelope before it is for clients that read it all the same.
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
  constructor(reply: FastifyReply, status: number, times: KeepAliveTimes) {
    this.#reply = reply;
    this.#status = status;
    this.#times = times;
  }

  start(headers: Readonly<Record<string, string>>): void {
    this.#headers = setTimeout(() => this.#sendHeaders(headers), this.#times.headersAfter);
  }

  /** Ends a response that has begun; returns false when nothing was sent yet. */
  end({ status, body }: RouteResponse): boolean {
    return this.endWith(() => JSON.stringify(body), status === this.#status);
  }

  /** The same with the text of the body; `whole` is false for that of a failure. */
  endWith(text: () => string, whole = true): boolean {
    clearTimeout(this.#headers);
    clearInterval(this.#spaces);
    if (this.#spaces === undefined) return false;
    const { raw } = this.#reply;
    if (whole) raw.end(text());
    // Without chunks the end of the connection is the end of the body, unless it is a reset.
    else if (raw.req.httpVersion === '1.0') raw.socket?.resetAndDestroy();
    else raw.write(text(), () => raw.destroy());
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
