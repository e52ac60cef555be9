// Clients of guests whose responses the gateway parses. Root reads frames only: bounded, and parsed
// as JSON by the schema of the call.
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { Readable, type Duplex } from 'node:stream';
import { hasCode } from '@berth/os/errors.ts';
import { deadlineOf, type CallSpec, type ResponseOf } from '@berth/protocol/calls/define.ts';
import type { CallOptions } from '@berth/protocol/http/peer.ts';
import type { Upload } from '@berth/protocol/http/serve.ts';
import type { GuestClient, GuestRequest, Guests } from '../guest/client.ts';
import type { GuestEndpoint } from '../vm/driver.ts';
import { boundedMessageOf, HostError } from '../vm/host-error.ts';
import { FRAME, FrameFault, FrameReader, writeJson, type Frame } from './frames.ts';
import { errorIn, type GatewayOrder } from './order.ts';

/** Beyond the deadline of the call in the gateway: a gateway that hangs is given up. */
const GATEWAY_MARGIN_MS = 2_000;
/** A failure, or the acceptance of a stream. */
const SMALL_BYTES = 32_768;
/** The gateway passes on what it reads from a socket. */
const CHUNK_BYTES = 1_048_576;

export interface Gateway {
  /** Path of its socket, once it serves. Rejects when the signal aborts. */
  ready(signal: AbortSignal): Promise<string>;
  /** Reports a socket that accepts no connection. */
  refused(socket: string): void;
}

/** Guests that are reached through the gateway. */
export function guestsBehind(gateway: Gateway): Guests {
  let made = 0;
  return {
    clientOf: (endpoint, secret) => {
      made += 1;
      return new GatewayGuestClient(gateway, `${process.pid}-${made}`, endpoint, secret ?? null);
    },
  };
}

/** The order of a call without the fields that every order has. */
type Ordered = { do: 'reach' } | { do: 'call' | 'stream' | 'open'; call: CallSpec; request: GuestRequest<CallSpec> };

class GatewayGuestClient implements GuestClient {
  readonly endpoint: GuestEndpoint;
  readonly #gateway: Gateway;
  readonly #name: string;
  readonly #inFlight = new Set<Socket>();
  #secret: string | null;
  #closed: HostError | null = null;

  constructor(gateway: Gateway, name: string, endpoint: GuestEndpoint, secret: string | null) {
    this.#gateway = gateway;
    this.#name = name;
    this.endpoint = endpoint;
    this.#secret = secret;
  }

  useSecret(secret: string): void {
    this.#secret = secret;
  }

  async reach(options: { signal: AbortSignal; deadlineMs: number }): Promise<void> {
    await this.#exchange({ do: 'reach' }, options, async (connection, reader) => {
      await accepted(reader, SMALL_BYTES);
      connection.destroy();
    });
  }

  async call<C extends CallSpec>(call: C, request: GuestRequest<C>, options: CallOptions = {}): Promise<ResponseOf<C>> {
    return await this.#exchange({ do: 'call', call, request }, options, async (connection, reader) => {
      const { payload } = await accepted(reader, Math.max(SMALL_BYTES, call.responseBytes ?? 0));
      connection.destroy();
      const parsed = call.response?.safeParse(JSON.parse(payload.toString('utf8')));
      if (parsed?.success !== true) throw new FrameFault('the response does not match its call');
      return parsed.data as ResponseOf<C>;
    });
  }

  async stream<C extends CallSpec>(call: C, request: GuestRequest<C>, options: CallOptions = {}): Promise<Readable> {
    return await this.#exchange({ do: 'stream', call, request }, options, async (connection, reader, settle) => {
      await accepted(reader, SMALL_BYTES);
      return this.#chunksOf(connection, reader, call.responseBytes ?? 0, settle);
    });
  }

  async open<C extends CallSpec>(call: C, request: GuestRequest<C>, options: CallOptions = {}): Promise<Duplex> {
    return await this.#exchange({ do: 'open', call, request }, options, async (connection, reader) => {
      await accepted(reader, SMALL_BYTES);
      reader.release();
      // The caller's from here on.
      this.#inFlight.delete(connection);
      return connection;
    });
  }

  close(why: HostError | null = null): void {
    this.#closed ??= why;
    for (const connection of this.#inFlight) connection.destroy();
    void this.#forget();
  }

  async #forget(): Promise<void> {
    try {
      const connection = connect(await this.#gateway.ready(AbortSignal.timeout(GATEWAY_MARGIN_MS)));
      connection.on('error', () => undefined).resume();
      this.#order(connection, { do: 'close', guest: this.#name });
      connection.end();
    } catch {
      // A gateway that is not ready has no connection of the guest.
    }
  }

  /**
   * Sends the order and runs `receive` on its connection, within the deadline. `settle` detaches
   * deadline and signal; it is called when `receive` has finished, unless its result is a stream.
   */
  async #exchange<T>(
    order: Ordered,
    options: CallOptions,
    receive: (connection: Socket, reader: FrameReader, settle: () => void) => Promise<T>,
  ): Promise<T> {
    const { signal } = options;
    signal?.throwIfAborted();
    const body = 'request' in order ? (order.request as { body?: unknown }).body : undefined;
    const deadlineMs = options.deadlineMs ?? ('call' in order ? deadlineOf(order.call, 'guest', body) : 0);
    const late = new AbortController();
    const timer = setTimeout(() => late.abort(this.#late(deadlineMs)), deadlineMs + GATEWAY_MARGIN_MS);
    const either = signal === undefined ? late.signal : AbortSignal.any([signal, late.signal]);
    let connection: Socket | undefined;
    const onAbort = (): void => void connection?.destroy();
    const settle = (): void => {
      clearTimeout(timer);
      either.removeEventListener('abort', onAbort);
    };
    either.addEventListener('abort', onAbort, { once: true });
    try {
      connection = await this.#connect(either);
      this.#send(connection, order, deadlineMs);
      const result = await receive(connection, new FrameReader(connection), settle);
      if (!(result instanceof Readable) || order.do === 'open') settle();
      return result;
    } catch (error) {
      settle();
      connection?.destroy();
      throw this.#failure(error, either);
    }
  }

  /** Connects to the gateway; waits for the next one if this one has died. */
  async #connect(signal: AbortSignal): Promise<Socket> {
    for (;;) {
      const path = await this.#gateway.ready(signal);
      signal.throwIfAborted();
      const connection = connect({ path, allowHalfOpen: true });
      this.#inFlight.add(connection);
      connection.once('close', () => this.#inFlight.delete(connection));
      try {
        await once(connection, 'connect');
        // Readers learn of a failure by its end.
        connection.on('error', () => undefined);
        return connection;
      } catch (error) {
        if (!hasCode(error, 'ECONNREFUSED', 'ENOENT')) throw error;
        this.#gateway.refused(path);
      }
    }
  }

  #send(connection: Socket, order: Ordered, deadlineMs: number): void {
    const { endpoint } = this;
    const common = { guest: this.#name, endpoint, secret: this.#secret, deadlineMs };
    if (order.do === 'reach') return this.#order(connection, { do: 'reach', ...common });
    const { upload, ...parts } = order.request as { upload?: Upload } & Record<string, unknown>;
    const uploadBytes = upload?.bytes ?? null;
    this.#order(connection, { do: order.do, ...common, call: order.call.name, parts, uploadBytes });
    // The content belongs to the caller: never destroyed, nor read to its end.
    upload?.content.pipe(connection, { end: false });
  }

  #order(connection: Socket, order: GatewayOrder): void {
    writeJson(connection, FRAME.order, order);
  }

  #chunksOf(connection: Socket, reader: FrameReader, maxBytes: number, settle: () => void): Readable {
    const failure = (error: unknown): Error => this.#failure(error, null);
    async function* chunks(): AsyncGenerator<Buffer> {
      let bytes = 0;
      try {
        for (;;) {
          const frame = await reader.frame(CHUNK_BYTES);
          if (frame?.kind === FRAME.end) return;
          if (frame?.kind === FRAME.failure) throw errorIn(frame.payload);
          if (frame?.kind !== FRAME.chunk) throw new FrameFault('the connection closed in the middle of the response');
          bytes += frame.payload.byteLength;
          if (bytes > maxBytes) throw new FrameFault(`the response is longer than ${maxBytes} bytes`);
          yield frame.payload;
        }
      } catch (error) {
        throw failure(error);
      } finally {
        settle();
        connection.destroy();
      }
    }
    const stream = Readable.from(chunks(), { objectMode: false });
    // Ends the call while it waits for a chunk, and of a stream that was never read.
    stream.once('close', () => {
      settle();
      connection.destroy();
    });
    stream.on('error', () => undefined);
    return stream;
  }

  #failure(error: unknown, signal: AbortSignal | null): Error {
    if (signal?.aborted === true) return signal.reason as Error;
    if (this.#closed !== null) return this.#closed;
    if (error instanceof HostError) return error;
    return new HostError('guest_unreachable', `the guest gateway: ${boundedMessageOf(error)}`, { cause: error });
  }

  #late(deadlineMs: number): HostError {
    return new HostError('guest_unreachable', `no response of the guest gateway within ${deadlineMs / 1_000} s`);
  }
}

/** The result frame. Throws the failure in its place. */
async function accepted(reader: FrameReader, maxBytes: number): Promise<Frame> {
  const frame = await reader.frame(maxBytes);
  if (frame?.kind === FRAME.result) return frame;
  if (frame?.kind === FRAME.failure) throw errorIn(frame.payload);
  throw new FrameFault('it closed the connection');
}
