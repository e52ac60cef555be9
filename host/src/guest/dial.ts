// The first connection to a freshly restored guest, opened as soon as its daemon listens. The
// kernel repeats a lost SYN only after a second, so unanswered attempts are overtaken by new ones.
import { connect, type Socket } from 'node:net';
import type { GuestEndpoint } from '../vm/driver.ts';

/** Pause after a refused attempt. */
const RETRY_MS = 10;
/** Time without a response after which another attempt starts. */
const FALLBACK_DELAY_MS = 150;
const OPEN_ATTEMPTS = 6;

/**
 * Resolves with a connected socket, which the caller closes. Rejects with the signal's reason,
 * leaving nothing open.
 */
export async function dial(endpoint: GuestEndpoint, signal: AbortSignal): Promise<Socket> {
  signal.throwIfAborted();
  const open = new Set<Socket>();
  const winner = Promise.withResolvers<Socket>();
  let timer: NodeJS.Timeout | undefined;

  const attempt = (): void => {
    clearTimeout(timer);
    timer = setTimeout(attempt, FALLBACK_DELAY_MS);
    if (open.size >= OPEN_ATTEMPTS) return;

    const socket = connect({ host: endpoint.address, port: endpoint.port, noDelay: true });
    open.add(socket);
    socket.once('connect', () => {
      open.delete(socket);
      winner.resolve(socket);
    });
    socket.on('error', () => {
      // Refused or unreachable: the daemon does not listen yet. Once connected, the socket's new
      // owner also listens for errors.
      if (open.delete(socket) && !signal.aborted) {
        clearTimeout(timer);
        timer = setTimeout(attempt, RETRY_MS);
      }
    });
  };
  const onAbort = (): void => winner.reject(signal.reason);
  signal.addEventListener('abort', onAbort, { once: true });
  attempt();
  try {
    return await winner.promise;
  } finally {
    clearTimeout(timer);
    signal.removeEventListener('abort', onAbort);
    for (const socket of open) {
      open.delete(socket);
      socket.destroy();
    }
  }
}
