// Time limit for the body of a request to the service. Node's own limit would also apply to
// previews, whose uploads have none.
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

export const BODY_ARRIVES_MS = 60_000;
/** Event of a request whose reader limits the arrival of the body itself. */
export const LONG_ARRIVAL = Symbol('long arrival');

/**
 * Returns a function that ends a request whose body does not arrive in time, as Node's
 * `requestTimeout` does.
 */
export function boundArrivals(
  server: Server,
  ms: number,
): (request: IncomingMessage, response: ServerResponse) => void {
  // By connection: Node emits no end for a request that was answered before its body arrived. A
  // timer that outlived the connection would keep its memory.
  const timers = new WeakMap<Socket, NodeJS.Timeout>();

  return (request, response) => {
    const { headers, socket } = request;
    if (headers['content-length'] === undefined && headers['transfer-encoding'] === undefined) return;
    if (timers.has(socket)) clearTimeout(timers.get(socket));
    else socket.once('close', () => clearTimeout(timers.get(socket)));
    const timer = setTimeout(() => {
      if (request.complete || socket.destroyed) return;
      // Do not respond twice.
      if (response.headersSent) {
        socket.destroy();
      } else {
        server.emit(
          'clientError',
          Object.assign(new Error('the body did not arrive in time'), { code: 'ERR_HTTP_REQUEST_TIMEOUT' }),
          socket,
        );
      }
    }, ms);
    // Do not keep the process alive.
    timer.unref();
    timers.set(socket, timer);
    const end = (): void => clearTimeout(timer);
    request.once('close', end).once(LONG_ARRIVAL, end);
  };
}
