// The first connection to a guest that was restored a moment ago: opened as soon as its daemon
// listens, within a deadline. A lost SYN is repeated by the kernel after a whole second, so silent
// attempts are overtaken by new ones instead of waited for.
import { connect, type Socket } from 'node:net';
import type { GuestEndpoint } from '../vm/driver.ts';

/** Pause after an attempt that was refused. */
const RETRY_MS = 10;
/** An attempt that got no answer for this long is joined by another. */
const OVERTAKE_MS = 150;
const OPEN_ATTEMPTS = 6;

/**
 * Resolves with a connected socket, the caller's to close. Rejects with the signal's reason;
 * nothing stays open then.
 */
export async function dial(endpoint: GuestEndpoint, signal: AbortSignal): Promise<Socket> {
  signal.throwIfAborted();
  const open = new Set<Socket>();
  const winner = Promise.withResolvers<Socket>();
  let timer: NodeJS.Timeout | undefined;

  const attempt = (): void => {
    clearTimeout(timer);
    timer = setTimeout(attempt, OVERTAKE_MS);
    if (open.size >= OPEN_ATTEMPTS) return;

    const socket = connect({ host: endpoint.address, port: endpoint.port, noDelay: true });
    open.add(socket);
    socket.once('connect', () => {
      open.delete(socket);
      winner.resolve(socket);
    });
    socket.on('error', () => {
      // Refused or unreachable: nobody listens yet. Once connected, the socket's new owner listens
      // for errors too.
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
