// How long the body of a request to the service may take to arrive. Node's own bound would hold for
// previews too, whose uploads take as long as they take.
import type { IncomingMessage, Server, ServerResponse } from 'node:http';

export const BODY_ARRIVES_MS = 60_000;

/**
 * Ends a request whose body does not arrive in time, as Node does where it is told how long a
 * request may take.
 */
export function boundArrival(server: Server, request: IncomingMessage, response: ServerResponse, ms: number): void {
  const { headers } = request;
  if (headers['content-length'] === undefined && headers['transfer-encoding'] === undefined) return;
  const timer = setTimeout(() => {
    if (request.complete || request.socket.destroyed) return;
    // What was answered already is not answered once more.
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
  // Node does not tell of the end of a request that was answered before its body came: nothing may
  // wait for that.
  timer.unref();
  request.once('close', () => clearTimeout(timer));
}
