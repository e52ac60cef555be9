// Raw streams into running guests: opens them, shares their number among orgs, and closes those of
// a VM that stops running or of a caller that is gone. Must not know their users.
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { guestPort } from '@berth/protocol/calls/connections.ts';
import { deadlineOf } from '@berth/protocol/calls/define.ts';
import { GUEST_PORT } from '@berth/protocol/guest.ts';
import { SharedCapacity, type Release } from '@berth/protocol/shared-capacity.ts';
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

/** Names given by the caller. */
export interface StreamLabel {
  /** Owner of a share of the host's streams. */
  org: string;
  /** For {@link GuestStreams.close}. */
  stream?: string | undefined;
}

export class GuestStreams {
  readonly #perVm: number;
  readonly #capacity: SharedCapacity;
  readonly #named = new Map<string, AbortController>();

  constructor({ perVm, perHost }: StreamLimits) {
    this.#perVm = perVm;
    this.#capacity = new SharedCapacity(perHost);
  }

  /**
   * Opens a stream into a running VM. The stream can be half-closed, is the caller's to close, and
   * is destroyed when the VM is released. Rejects with `too_many_streams`, the reason of the VM's
   * release, the signal's reason, or as `open` does.
   */
  async open(
    vm: StreamOwner,
    { org, stream: name }: StreamLabel,
    signal: AbortSignal,
    open: (opening: AbortSignal) => Promise<Duplex>,
  ): Promise<Duplex> {
    const leave = this.#enter(vm, org);
    const over = new AbortController();
    const release = (): void => {
      leave();
      vm.streams.delete(over);
      if (name !== undefined && this.#named.get(name) === over) this.#named.delete(name);
    };
    vm.streams.add(over);
    if (name !== undefined) this.#named.set(name, over);
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

  /** Closes streams by name, open or opening; ignores unknown names. */
  close(names: readonly string[]): void {
    for (const name of names)
      this.#named.get(name)?.abort(new HostError('superseded', 'the caller has closed the stream'));
  }

  #enter({ streams }: StreamOwner, org: string): Release {
    if (streams.size >= this.#perVm)
      throw tooMany(`the VM has reached its limit of ${this.#perVm} open streams (BERTH_STREAMS_PER_VM)`);

    const taken = this.#capacity.take(org);
    if (typeof taken === 'function') return taken;
    const limit = `${this.#capacity.places} open streams (BERTH_STREAMS)`;
    throw tooMany(
      taken === 'full'
        ? `the host has reached its limit of ${limit}`
        : `the org has reached its share of the host's ${limit}: half of those that other orgs leave`,
    );
  }
}

function tooMany(message: string): HostError {
  return new HostError('too_many_streams', message);
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
