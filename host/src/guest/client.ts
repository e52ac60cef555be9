// The client of a guest daemon. The guest is hostile: every response is limited in bytes and time,
// parsed by its schema, and never redirected. Each VM has an instance with open connections,
// because a new one costs milliseconds in an emulated guest.
import type { Duplex, Readable } from 'node:stream';
import type { CallSpec, PartsOf, ResponseOf } from '@berth/protocol/calls/define.ts';
import { guestError } from '@berth/protocol/guest.ts';
import { CallClient } from '@berth/protocol/http/client.ts';
import type { CallOptions, FailureKind, Peer } from '@berth/protocol/http/peer.ts';
import type { Upload } from '@berth/protocol/http/serve.ts';
import { parseJson } from '@berth/protocol/json-text.ts';
import { HostError } from '../vm/host-error.ts';
import type { GuestEndpoint } from '../vm/driver.ts';
import { GuestAgent } from './agent.ts';
import { dial } from './dial.ts';

export type GuestRequest<C extends CallSpec> = PartsOf<C> & { upload?: Upload };

/** A valid response of the guest that refuses the call. */
export class GuestRefusal extends HostError {
  readonly status: number;

  constructor(status: number, message: string) {
    super('guest_unreachable', message);
    this.status = status;
  }
}

/**
 * The client of one guest daemon. Every method rejects with {@link HostError}, or with the reason
 * of the caller's signal.
 */
export interface GuestClient {
  readonly endpoint: GuestEndpoint;
  /** Sets the secret of all later calls. */
  useSecret(secret: string): void;
  /**
   * Waits until the guest daemon accepts a connection, unless one is open; the next call uses it.
   */
  reach(options: { signal: AbortSignal; deadlineMs: number }): Promise<void>;
  /** Sends a JSON call. */
  call<C extends CallSpec>(call: C, request: GuestRequest<C>, options?: CallOptions): Promise<ResponseOf<C>>;
  /**
   * Sends a call whose response is streamed. The stream fails with a {@link HostError}. Destroying
   * it ends the call.
   */
  stream<C extends CallSpec>(call: C, request: GuestRequest<C>, options?: CallOptions): Promise<Readable>;
  /**
   * Opens a raw stream, which can be half-closed. The caller closes it: it outlives this client.
   */
  open<C extends CallSpec>(call: C, request: GuestRequest<C>, options?: CallOptions): Promise<Duplex>;
  /** Closes every connection; calls in flight fail, with `why` if given. */
  close(why?: HostError | null): void;
}

/** Makes the clients of guests. */
export interface Guests {
  clientOf(endpoint: GuestEndpoint, secret?: string): GuestClient;
}

/** Speaks to the guest in this process. */
export class DirectGuestClient implements GuestClient {
  readonly endpoint: GuestEndpoint;
  readonly #agent = new GuestAgent();
  readonly #calls: CallClient;
  #secret: string | null;
  /** Reason of the close. */
  #closed: HostError | null = null;

  constructor(endpoint: GuestEndpoint, secret: string | null = null) {
    this.endpoint = endpoint;
    this.#secret = secret;
    const unreachable = (message: string, cause?: unknown): HostError =>
      this.#closed ?? new HostError('guest_unreachable', message, { cause });
    const peer: Peer = {
      side: 'guest',
      target: { host: endpoint.address, port: endpoint.port },
      authorization: () => (this.#secret === null ? undefined : `Bearer ${this.#secret}`),
      agentOf: () => this.#agent,
      refusal: refusalOf,
      late: (what, deadlineMs) => unreachable(`${what}: no response within ${deadlineMs / 1_000} s`),
      failure: (_kind: FailureKind, what, message, cause) => unreachable(`${what}: ${message}`, cause),
      isFailure: (error): error is HostError => error instanceof HostError,
    };
    this.#calls = new CallClient(peer);
  }

  useSecret(secret: string): void {
    this.#secret = secret;
  }

  async reach({ signal, deadlineMs }: { signal: AbortSignal; deadlineMs: number }): Promise<void> {
    if (this.#agent.hasOpen()) return;

    const late = AbortSignal.timeout(deadlineMs);
    try {
      this.#agent.handOut(await dial(this.endpoint, AbortSignal.any([signal, late])));
    } catch (error) {
      signal.throwIfAborted();
      throw (
        this.#closed ??
        new HostError('guest_unreachable', `no connection to the guest within ${deadlineMs / 1_000} s`, {
          cause: error,
        })
      );
    }
  }

  call<C extends CallSpec>(call: C, request: GuestRequest<C>, options?: CallOptions): Promise<ResponseOf<C>> {
    return this.#calls.call(call, request, options);
  }

  stream<C extends CallSpec>(call: C, request: GuestRequest<C>, options?: CallOptions): Promise<Readable> {
    return this.#calls.stream(call, request, options);
  }

  open<C extends CallSpec>(call: C, request: GuestRequest<C>, options?: CallOptions): Promise<Duplex> {
    return this.#calls.open(call, request, options);
  }

  close(why: HostError | null = null): void {
    this.#closed ??= why;
    this.#agent.destroy();
  }
}

export const DIRECT_GUESTS: Guests = {
  clientOf: (endpoint, secret) => new DirectGuestClient(endpoint, secret),
};

/** Converts a refusal of the guest, by the error table of the call if any. */
function refusalOf(
  { errors = [], statuses = {} }: CallSpec,
  what: string,
  status: number,
  text: string,
): HostError | undefined {
  const parsed = guestError.safeParse(parseJson(text));
  // Status 200 without an error: the connection broke before the end of the response.
  if (status === 200 && !parsed.success) return undefined;
  const { code, errno, message } = parsed.data?.error ?? {};
  const known = errors.find((one) => one === code);
  if (known !== undefined) return new HostError(known, `the guest refused the call: ${errno ?? known}`, { errno });

  const refusal = new GuestRefusal(
    status,
    `${what}: the guest returned ${status}${message === undefined ? '' : `: ${message}`}`,
  );
  const named = statuses[status];
  return named === undefined ? refusal : new HostError(named[0], named[1], { cause: refusal });
}
