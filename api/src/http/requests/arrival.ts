// Time limit for the body of a request to the service. Node's own limit would also apply to
// previews, whose uploads have none.
import type { IncomingMessage, Server, ServerResponse } from 'node:http';

export const BODY_ARRIVES_MS = 60_000;

/** Ends a request whose body does not arrive in time, as Node's `requestTimeout` does. */
export function boundArrival(server: Server, request: IncomingMessage, response: ServerResponse, ms: number): void {
  const { headers } = request;
  if (headers['content-length'] === undefined && headers['transfer-encoding'] === undefined) return;
  const timer = setTimeout(() => {
    if (request.complete || request.socket.destroyed) return;
    // Do not respond twice.
    if (response.headersSent) {
      request.socket.destroy();
    } else {
      server.emit(
        'clientError',
        Object.assign(new Error('the body did not arrive in time'), { code: 'ERR_HTTP_REQUEST_TIMEOUT' }),
        request.socket,
      );
    }
  }, ms);
  // Node emits no end for a request that was answered before its body arrived: do not keep the
  // process alive.
  timer.unref();
  request.once('close', () => clearTimeout(timer));
}
