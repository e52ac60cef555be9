// Clients of guests whose responses the gateway parses. Root reads frames only: bounded, and parsed
// as JSON by the schema of the call.
import type { Socket } from 'node:net';
import { Readable, type Duplex } from 'node:stream';
import { deadlineOf, type CallSpec, type ResponseOf } from '@berth/protocol/calls/define.ts';
import type { CallOptions } from '@berth/protocol/http/peer.ts';
import type { Upload } from '@berth/protocol/http/serve.ts';
import type { GuestClient, GuestRequest, Guests } from '../guest/client.ts';
import type { GuestEndpoint } from '../vm/driver.ts';
import { boundedMessageOf, HostError } from '../vm/host-error.ts';
import { GatewayConnections, type Gateway, type GatewayConnection } from './connections.ts';
import { FRAME, FrameFault, writeJson, type Frame, type FrameReader } from './frames.ts';
import { errorIn, type GatewayOrder } from './order.ts';

/** Beyond the deadline of the call in the gateway: a gateway that hangs is given up. */
const GATEWAY_MARGIN_MS = 2_000;
/** A failure, or the acceptance of a stream. */
const SMALL_BYTES = 32_768;
/** The gateway passes on what it reads from a socket. */
const CHUNK_BYTES = 1_048_576;

/** Guests that are reached through the gateway. */
export function guestsBehind(gateway: Gateway): Guests {
  const connections = new GatewayConnections(gateway);
  let made = 0;
  return {
    clientOf: (endpoint, secret) => {
      made += 1;
      return new GatewayGuestClient(connections, `${process.pid}-${made}`, endpoint, secret ?? null);
    },
  };
}

/** The order of a call without the fields that every order has. */
type Ordered = { do: 'reach' } | { do: 'call' | 'stream' | 'open'; call: CallSpec; request: GuestRequest<CallSpec> };

class GatewayGuestClient implements GuestClient {
  readonly endpoint: GuestEndpoint;
  readonly #connections: GatewayConnections;
  readonly #name: string;
  readonly #inFlight = new Set<GatewayConnection>();
  #secret: string | null;
  #closed: HostError | null = null;

  constructor(connections: GatewayConnections, name: string, endpoint: GuestEndpoint, secret: string | null) {
    this.#connections = connections;
    this.#name = name;
    this.endpoint = endpoint;
    this.#secret = secret;
  }

  useSecret(secret: string): void {
    this.#secret = secret;
  }

  async reach(options: { signal: AbortSignal; deadlineMs: number }): Promise<void> {
    await this.#exchange({ do: 'reach' }, options, async (connection, settle) => {
      await accepted(connection.reader, SMALL_BYTES);
      await this.#finish(connection, settle);
    });
  }

  async call<C extends CallSpec>(call: C, request: GuestRequest<C>, options: CallOptions = {}): Promise<ResponseOf<C>> {
    return await this.#exchange({ do: 'call', call, request }, options, async (connection, settle) => {
      const { payload } = await accepted(connection.reader, Math.max(SMALL_BYTES, call.responseBytes ?? 0));
      const parsed = call.response?.safeParse(JSON.parse(payload.toString('utf8')));
      if (parsed?.success !== true) throw new FrameFault('the response does not match its call');
      await this.#finish(connection, settle);
      return parsed.data as ResponseOf<C>;
    });
  }

  async stream<C extends CallSpec>(call: C, request: GuestRequest<C>, options: CallOptions = {}): Promise<Readable> {
    return await this.#exchange({ do: 'stream', call, request }, options, async (connection, settle) => {
      await accepted(connection.reader, SMALL_BYTES);
      return this.#chunksOf(connection, call.responseBytes ?? 0, settle);
    });
  }

  async open<C extends CallSpec>(call: C, request: GuestRequest<C>, options: CallOptions = {}): Promise<Duplex> {
    return await this.#exchange({ do: 'open', call, request }, options, async (connection) => {
      await accepted(connection.reader, SMALL_BYTES);
      connection.reader.release();
      // The caller's from here on.
      this.#inFlight.delete(connection);
      return connection.socket;
    });
  }

  close(why: HostError | null = null): void {
    this.#closed ??= why;
    for (const { socket } of this.#inFlight) socket.destroy();
    void this.#forget();
  }

  async #forget(): Promise<void> {
    try {
      const { socket } = await this.#connections.take(AbortSignal.timeout(GATEWAY_MARGIN_MS));
      socket.resume();
      sendOrder(socket, { do: 'close', guest: this.#name });
      socket.end();
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
    receive: (connection: GatewayConnection, settle: () => void) => Promise<T>,
  ): Promise<T> {
    const { signal } = options;
    signal?.throwIfAborted();
    const body = 'request' in order ? (order.request as { body?: unknown }).body : undefined;
    const deadlineMs = options.deadlineMs ?? ('call' in order ? deadlineOf(order.call, 'guest', body) : 0);
    const late = new AbortController();
    const timer = setTimeout(() => late.abort(this.#late(deadlineMs)), deadlineMs + GATEWAY_MARGIN_MS);
    const either = signal === undefined ? late.signal : AbortSignal.any([signal, late.signal]);
    let connection: GatewayConnection | undefined;
    const onAbort = (): void => void connection?.socket.destroy();
    const settle = (): void => {
      clearTimeout(timer);
      either.removeEventListener('abort', onAbort);
    };
    either.addEventListener('abort', onAbort, { once: true });
    try {
      connection = await this.#connect(either);
      this.#send(connection.socket, order, deadlineMs);
      const result = await receive(connection, settle);
      if (!(result instanceof Readable) || order.do === 'open') settle();
      return result;
    } catch (error) {
      settle();
      if (connection !== undefined) this.#end(connection);
      throw this.#failure(error, either);
    }
  }

  async #connect(signal: AbortSignal): Promise<GatewayConnection> {
    const connection = await this.#connections.take(signal);
    this.#inFlight.add(connection);
    // Closed, or given up, meanwhile.
    if (this.#closed !== null || signal.aborted) connection.socket.destroy();
    return connection;
  }

  /** Keeps the connection if the gateway has carried out the call; closes it if not. */
  async #finish(connection: GatewayConnection, settle: () => void): Promise<void> {
    const frame = await connection.reader.frame(0);
    if (frame?.kind === FRAME.end) this.#keep(connection, settle);
    else this.#end(connection);
  }

  /** Settles first: a late abort would close the connection under another call. */
  #keep(connection: GatewayConnection, settle: () => void): void {
    settle();
    this.#inFlight.delete(connection);
    this.#connections.keep(connection);
  }

  #end(connection: GatewayConnection): void {
    this.#inFlight.delete(connection);
    connection.socket.destroy();
  }

  #send(socket: Socket, order: Ordered, deadlineMs: number): void {
    const { endpoint } = this;
    const common = { guest: this.#name, endpoint, secret: this.#secret, deadlineMs };
    if (order.do === 'reach') return sendOrder(socket, { do: 'reach', ...common });
    const { upload, ...parts } = order.request as { upload?: Upload } & Record<string, unknown>;
    const uploadBytes = upload?.bytes ?? null;
    sendOrder(socket, { do: order.do, ...common, call: order.call.name, parts, uploadBytes });
    // The content belongs to the caller: never destroyed, nor read to its end.
    upload?.content.pipe(socket, { end: false });
  }

  #chunksOf(connection: GatewayConnection, maxBytes: number, settle: () => void): Readable {
    const { reader } = connection;
    const failure = (error: unknown): Error => this.#failure(error, null);
    const end = (): void => {
      settle();
      if (this.#inFlight.has(connection)) this.#end(connection);
    };
    const keep = (): void => this.#keep(connection, settle);
    async function* chunks(): AsyncGenerator<Buffer> {
      let bytes = 0;
      try {
        for (;;) {
          const frame = await reader.frame(CHUNK_BYTES);
          if (frame?.kind === FRAME.end) return keep();
          if (frame?.kind === FRAME.failure) throw errorIn(frame.payload);
          if (frame?.kind !== FRAME.chunk) throw new FrameFault('the connection closed in the middle of the response');
          bytes += frame.payload.byteLength;
          if (bytes > maxBytes) throw new FrameFault(`the response is longer than ${maxBytes} bytes`);
          yield frame.payload;
        }
      } catch (error) {
        throw failure(error);
      } finally {
        end();
      }
    }
    const stream = Readable.from(chunks(), { objectMode: false });
    // Ends the call while it waits for a chunk, and of a stream that was never read.
    stream.once('close', end);
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

function sendOrder(socket: Socket, order: GatewayOrder): void {
  writeJson(socket, FRAME.order, order);
}

/** The result frame. Throws the failure in its place. */
async function accepted(reader: FrameReader, maxBytes: number): Promise<Frame> {
  const frame = await reader.frame(maxBytes);
  if (frame?.kind === FRAME.result) return frame;
  if (frame?.kind === FRAME.failure) throw errorIn(frame.payload);
  throw new FrameFault('it closed the connection');
}
