// Raw streams into running guests: opens them, limits their number, and closes those of a VM that
// stops running. Must not know their users.
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { guestPort } from '@berth/protocol/calls/connections.ts';
import { deadlineOf } from '@berth/protocol/calls/define.ts';
import { GUEST_PORT } from '@berth/protocol/guest.ts';
import type { GuestClient } from './client.ts';
import { HostError, boundedMessageOf } from '../vm/host-error.ts';
import type { GuestEndpoint } from '../vm/driver.ts';
import { connectRecycling } from './read-buffers.ts';

/** Time for a guest to accept a connection. A busy emulated guest is slow. */
const CONNECT_MS = deadlineOf(guestPort, 'guest');

export interface StreamLimits {
  /** Limit of open streams, including those being opened. */
  perVm: number;
  perHost: number;
}

/** A VM's streams; each controller ends its stream. */
interface StreamOwner {
  readonly streams: Set<AbortController>;
}

export class GuestStreams {
  readonly #limits: StreamLimits;
  #open = 0;

  constructor(limits: StreamLimits) {
    this.#limits = limits;
  }

  /**
   * Opens a stream into a running VM. The stream can be half-closed, is the caller's to close, and
   * is destroyed when the VM is released. Rejects with `too_many_streams`, the reason of the VM's
   * release, the signal's reason, or as `open` does.
   */
  async open(vm: StreamOwner, signal: AbortSignal, open: (opening: AbortSignal) => Promise<Duplex>): Promise<Duplex> {
    this.#admit(vm);
    const over = new AbortController();
    const release = (): void => {
      if (vm.streams.delete(over)) this.#open -= 1;
    };
    this.#open += 1;
    vm.streams.add(over);
    try {
      const stream = await open(AbortSignal.any([signal, over.signal]));
      stream.once('close', release);
      over.signal.addEventListener('abort', () => stream.destroy(), { once: true });
      const gone = [over.signal, signal].find(({ aborted }) => aborted);
      if (gone === undefined) return stream;

      stream.destroy();
      throw gone.reason;
    } catch (error) {
      release();
      throw error;
    }
  }

  #admit(vm: StreamOwner): void {
    const { perVm, perHost } = this.#limits;
    if (vm.streams.size >= perVm)
      throw new HostError('too_many_streams', `the VM has reached its limit of ${perVm} open streams`);

    if (this.#open >= perHost)
      throw new HostError('too_many_streams', `the host has reached its limit of ${perHost} open streams`);
  }
}

/**
 * Connects to the guest's address in its slot; if refused, through the guest daemon to the guest's
 * loopback. Rejects with `port_refused`, `port_forbidden` or `guest_unreachable`.
 */
export async function openGuestPort(guest: GuestClient, port: number, signal: AbortSignal): Promise<Duplex> {
  if (port === GUEST_PORT || port === guest.endpoint.port)
    throw new HostError('port_forbidden', `port ${port} is reserved for the guest daemon`);

  const direct = await dialPort({ ...guest.endpoint, port }, signal);
  return direct ?? guest.open(guestPort, { params: { port: String(port) } }, { signal });
}

/** Null when the connection is refused. */
function dialPort({ address, port }: GuestEndpoint, signal: AbortSignal): Promise<Socket | null> {
  const { promise, resolve, reject } = Promise.withResolvers<Socket | null>();
  signal.throwIfAborted();
  const socket = connectRecycling({ host: address, port, allowHalfOpen: true, noDelay: true });
  const settle = (settled: () => void): void => {
    clearTimeout(timer);
    signal.removeEventListener('abort', onAbort);
    settled();
  };
  const giveUp = (reason: unknown): void =>
    settle(() => {
      socket.destroy();
      reject(reason);
    });
  const onAbort = (): void => giveUp(signal.reason);
  const timer = setTimeout(() => {
    giveUp(new HostError('guest_unreachable', `no connection to port ${port} within ${CONNECT_MS / 1_000} s`));
  }, CONNECT_MS);
  signal.addEventListener('abort', onAbort, { once: true });
  socket.once('connect', () => settle(() => resolve(socket)));
  socket.on('error', (error: NodeJS.ErrnoException) => {
    settle(() =>
      error.code === 'ECONNREFUSED'
        ? resolve(null)
        : reject(new HostError('guest_unreachable', `port ${port}: ${boundedMessageOf(error)}`, { cause: error })),
    );
  });
  return promise;
}
