// Connections to the programs of this machine that listen on its loopback alone, as development
// servers do. Knows no HTTP.
import { connect, type Socket } from 'node:net';

/** In this order: most programs that listen on `localhost` take the first that it resolves to. */
const ADDRESSES = ['127.0.0.1', '::1'];

/** A program that listens but takes no connection has this long. */
const CONNECT_MS = 10_000;

/** Nothing listens on the port. */
export class NothingListens extends Error {
  override readonly name = 'NothingListens';
}

/** Whoever listens did not take the connection in time. */
export class NotTaken extends Error {
  override readonly name = 'NotTaken';
}

/**
 * Resolves with a connection that can be half closed. Rejects with {@link NothingListens}, {@link
 * NotTaken} or the signal's reason.
 */
export async function connectLoopback(port: number, signal: AbortSignal): Promise<Socket> {
  for (const host of ADDRESSES) {
    const socket = await dial(host, port, signal);
    if (socket !== null) return socket;
  }
  throw new NothingListens(`nothing listens on port ${port} of this machine's loopback`);
}

/** Null when nothing listens there. */
function dial(host: string, port: number, signal: AbortSignal): Promise<Socket | null> {
  const { promise, resolve, reject } = Promise.withResolvers<Socket | null>();
  signal.throwIfAborted();
  const socket = connect({ host, port, allowHalfOpen: true, noDelay: true });
  const settle = (settled: () => void): void => {
    clearTimeout(timer);
    signal.removeEventListener('abort', onAbort);
    settled();
  };
  const giveUp = (reason: unknown): void => settle(() => (socket.destroy(), reject(reason)));
  const onAbort = (): void => giveUp(signal.reason);
  const timer = setTimeout(() => giveUp(new NotTaken(`who listens on port ${port} takes no connection`)), CONNECT_MS);
  signal.addEventListener('abort', onAbort, { once: true });
  socket.once('connect', () => settle(() => resolve(socket)));
  socket.once('error', (error: NodeJS.ErrnoException) => {
    // Without IPv6 in the machine there is no such address.
    const nobody = error.code === 'ECONNREFUSED' || error.code === 'EADDRNOTAVAIL' || error.code === 'EAFNOSUPPORT';
    settle(() => (nobody ? resolve(null) : reject(error)));
  });
  return promise;
}
