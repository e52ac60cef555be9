// Raw streams into running guests: opens them, bounds how many there are, and closes a VM's own
// when it stops running. Must not know who uses them.
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import {
  GUEST_PORT,
  GUEST_STREAM_REFUSALS,
  PORT_STREAM,
  TERMINAL_STREAM,
  terminalQueryOf,
  type TerminalAsked,
} from '@berth/protocol/guest.ts';
import { GuestRefusal, type GuestClient } from './client.ts';
import { HostError, messageOf } from '../vm/host-error.ts';
import type { GuestEndpoint } from '../vm/driver.ts';
import { connectRecycling } from './read-buffers.ts';

/** For a guest to take a connection; an emulated one that is busy takes its time. */
const CONNECT_MS = 15_000;
/** For a guest to start a shell. */
const TERMINAL_MS = 30_000;

export interface StreamLimits {
  /** Streams open at once, those that are being opened included. */
  perVm: number;
  perHost: number;
}

/** A VM as far as streams are concerned: each that is open is ended by its controller. */
export interface StreamOwner {
  readonly streams: Set<AbortController>;
}

/** Where a stream leads: to a TCP port of the guest, or to a new terminal or command. */
export type StreamTarget = { port: number } | { terminal: TerminalAsked };

export class GuestStreams {
  readonly #limits: StreamLimits;
  #open = 0;

  constructor(limits: StreamLimits) {
    this.#limits = limits;
  }

  /**
   * Opens a stream into a VM that runs. It can be half closed, is the caller's to close, and is
   * destroyed when the VM is let go of. Rejects with `port_refused`, `port_forbidden`,
   * `too_many_streams`, `guest_unreachable`, with why the VM was let go of, or with the signal's
   * reason.
   */
  async open(vm: StreamOwner, guest: GuestClient, target: StreamTarget, signal: AbortSignal): Promise<Duplex> {
    if ('terminal' in target) return this.#hold(vm, signal, (opening) => toTerminal(guest, target.terminal, opening));

    const { port } = target;
    if (port === GUEST_PORT || port === guest.endpoint.port)
      throw new HostError('port_forbidden', `port ${port} is the guest daemon's own`);

    return this.#hold(vm, signal, (opening) => toPort(guest, port, opening));
  }

  async #hold(vm: StreamOwner, signal: AbortSignal, open: (opening: AbortSignal) => Promise<Duplex>): Promise<Duplex> {
    this.#letIn(vm);
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

  #letIn(vm: StreamOwner): void {
    const { perVm, perHost } = this.#limits;
    if (vm.streams.size >= perVm)
      throw new HostError('too_many_streams', `the VM has ${perVm} streams open, as many as it may`);

    if (this.#open >= perHost)
      throw new HostError('too_many_streams', `the host has ${perHost} streams open, as many as it may`);
  }
}

async function toTerminal(guest: GuestClient, asked: TerminalAsked, signal: AbortSignal): Promise<Duplex> {
  try {
    return await guest.openStream(`/terminal?${terminalQueryOf(asked)}`, TERMINAL_STREAM, {
      signal,
      deadlineMs: TERMINAL_MS,
    });
  } catch (error) {
    if (error instanceof GuestRefusal && error.status === GUEST_STREAM_REFUSALS.tooMany)
      throw new HostError('too_many_streams', 'the VM has as many terminals, or commands, as it may', { cause: error });

    throw error;
  }
}

/**
 * By the guest's address in its slot; when nobody listens there, by way of the guest daemon to the
 * guest's loopback.
 */
async function toPort(guest: GuestClient, port: number, signal: AbortSignal): Promise<Duplex> {
  const direct = await dialPort({ ...guest.endpoint, port }, signal);
  if (direct !== null) return direct;

  try {
    return await guest.openStream(`/ports/${port}`, PORT_STREAM, { signal, deadlineMs: CONNECT_MS });
  } catch (error) {
    if (error instanceof GuestRefusal && error.status === GUEST_STREAM_REFUSALS.refused)
      throw new HostError('port_refused', `nothing listens on port ${port} of the guest`, { cause: error });

    if (error instanceof GuestRefusal && error.status === GUEST_STREAM_REFUSALS.forbidden)
      throw new HostError('port_forbidden', `port ${port} is the guest daemon's own`, { cause: error });

    throw error;
  }
}

/** Null when the guest says that nobody listens. */
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
        : reject(new HostError('guest_unreachable', `port ${port}: ${messageOf(error)}`, { cause: error })),
    );
  });
  return promise;
}
