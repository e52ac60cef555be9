// Connections to programs that listen on the guest's loopback only, as development servers do.
import { connect, type Socket } from 'node:net';

/** Order of attempts: most programs that listen on `localhost` use its first address. */
const ADDRESSES = ['127.0.0.1', '::1'];

/** Timeout for a program that listens but does not accept. */
const CONNECT_MS = 10_000;

/** No program listens on the port. */
export class NothingListens extends Error {
  override readonly name = 'NothingListens';
}

/** The listening program did not accept in time. */
export class ConnectionRefused extends Error {
  override readonly name = 'ConnectionRefused';
}

/** Rejects with {@link NothingListens}, {@link ConnectionRefused} or the reason. */
export async function connectLoopback(port: number, signal: AbortSignal): Promise<Socket> {
  for (const host of ADDRESSES) {
    const socket = await dial(host, port, signal);
    if (socket !== null) return socket;
  }
  throw new NothingListens(`nothing listens on port ${port} of this machine's loopback`);
}

/** null: no program listens on the address. */
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
  const timer = setTimeout(
    () => giveUp(new ConnectionRefused(`who listens on port ${port} takes no connection`)),
    CONNECT_MS,
  );
  signal.addEventListener('abort', onAbort, { once: true });
  socket.once('connect', () => settle(() => resolve(socket)));
  socket.once('error', (error: NodeJS.ErrnoException) => {
    // A guest without IPv6 has no such address.
    const nobody = error.code === 'ECONNREFUSED' || error.code === 'EADDRNOTAVAIL' || error.code === 'EAFNOSUPPORT';
    settle(() => (nobody ? resolve(null) : reject(error)));
  });
  return promise;
}
