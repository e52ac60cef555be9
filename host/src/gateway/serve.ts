// The gateway's part of a call: speaks HTTP to the guest daemon, validates its response, and passes
// the result to the host daemon. Runs without privileges, in main.ts.
import { Readable, type Duplex } from 'node:stream';
import type { CallSpec } from '@berth/protocol/calls/define.ts';
import { splice, type ByteStream } from '@berth/protocol/splice.ts';
import { DirectGuestClient, type GuestRequest } from '../guest/client.ts';
import { newQuestions } from '../network/dns/questions.ts';
import { FRAME, FrameReader, writeFrame, writeJson, type Frame } from './frames.ts';
import { failureOf, gatewayOrder, GUEST_CALLS, type GatewayOrder } from './order.ts';

const ORDER_BYTES = 16 * 1_048_576;
/** A day: the streams' limits are the host daemon's. */
const STREAM_IDLE_MS = 86_400_000;

/** The orders of a connection. */
class Orders {
  readonly reader: FrameReader;
  #next: Promise<Frame | null> | null = null;

  constructor(connection: Duplex) {
    this.reader = new FrameReader(connection);
  }

  /** True from `await()` to `next()`. */
  get awaited(): boolean {
    return this.#next !== null;
  }

  /** Reads the next order meanwhile, which also notices the end of the connection. */
  await(): void {
    this.#next = this.reader.frame(ORDER_BYTES);
    this.#next.catch(() => undefined);
  }

  /** Resolves with null at the end of the connection. */
  async next(): Promise<GatewayOrder | null> {
    const frame = await (this.#next ?? this.reader.frame(ORDER_BYTES));
    this.#next = null;
    return frame === null ? null : gatewayOrder.parse(JSON.parse(frame.payload.toString('utf8')));
  }
}

export class GatewayServer {
  readonly #guests = new Map<string, DirectGuestClient>();
  readonly #questions = newQuestions();

  /** Carries out the orders of one connection, one after the other. Never rejects. */
  async serve(connection: Duplex): Promise<void> {
    const gone = new AbortController();
    const onGone = (): void => gone.abort(new Error('the host daemon ended the call'));
    connection.on('error', () => undefined);
    // Its end alone does not close a connection that can be half-closed.
    connection.once('end', onGone).once('close', onGone);
    const orders = new Orders(connection);
    try {
      for (;;) {
        const order = await orders.next();
        if (order === null) return;
        await this.#carryOut(order, connection, orders, gone);
        if (!orders.awaited) return;
        writeFrame(connection, FRAME.end);
      }
    } catch (error) {
      if (connection.writable) writeJson(connection, FRAME.failure, failureOf(error));
    } finally {
      connection.end();
    }
  }

  async #carryOut(order: GatewayOrder, connection: Duplex, orders: Orders, gone: AbortController): Promise<void> {
    const result = (value: unknown): void => writeJson(connection, FRAME.result, value);
    switch (order.do) {
      case 'close':
        this.#guests.get(order.guest)?.close();
        this.#guests.delete(order.guest);
        return;
      case 'answer':
        orders.await();
        return result(await this.#answer(order, gone.signal));
      default:
    }
    const guest = this.#guestOf(order);
    const options = { signal: gone.signal, deadlineMs: order.deadlineMs };
    if (order.do === 'reach') {
      orders.await();
      await guest.reach(options);
      return result(null);
    }
    const call = GUEST_CALLS.get(order.call);
    if (call === undefined) throw new Error(`unknown call ${order.call}`);
    const request = { ...order.parts } as GuestRequest<CallSpec>;
    if (order.do === 'open')
      return await passThrough(connection, orders.reader, () => guest.open(call, request, options));
    if (order.uploadBytes === null) {
      orders.await();
    } else {
      const { uploadBytes: bytes } = order;
      const content = uploadOf(orders.reader, bytes, (fault) => (fault === null ? orders.await() : gone.abort(fault)));
      request.upload = { bytes, content };
    }
    if (order.do === 'call') return result(await guest.call(call, request, options));
    await passOn(await guest.stream(call, request, options), connection);
  }

  async #answer({ message, ...rest }: Extract<GatewayOrder, { do: 'answer' }>, signal: AbortSignal): Promise<object> {
    const { answer, withheld, ...found } = await this.#questions(
      { ...rest, bytes: Buffer.from(message, 'base64') },
      signal,
    );
    return {
      ...found,
      answer: answer?.toString('base64') ?? null,
      withheld: withheld?.toString('base64') ?? null,
    };
  }

  #guestOf({ guest: name, endpoint, secret }: Exclude<GatewayOrder, { do: 'close' | 'answer' }>): DirectGuestClient {
    const guest = this.#guests.get(name) ?? new DirectGuestClient(endpoint, secret);
    if (secret !== null) guest.useSecret(secret);
    this.#guests.set(name, guest);
    return guest;
  }
}

/**
 * The bytes of an upload, which follow the order. Calls `ended` with null when all have come, with
 * the fault if the host daemon ended the call before.
 */
function uploadOf(reader: FrameReader, bytes: number, ended: (fault: Error | null) => void): Readable {
  async function* take(): AsyncGenerator<Buffer> {
    for (let left = bytes; left > 0;) {
      const chunk = await reader.chunk();
      if (chunk === null || chunk.length > left) throw new Error('the upload has another length');
      left -= chunk.length;
      yield chunk;
    }
    ended(null);
  }
  const upload = Readable.from(take(), { objectMode: false });
  upload.on('error', ended);
  return upload;
}

/** The connection continues as the raw stream of the guest. */
async function passThrough(connection: Duplex, reader: FrameReader, open: () => Promise<Duplex>): Promise<void> {
  reader.release();
  const seeEnd = (): void => void connection.read(0);
  connection.on('readable', seeEnd);
  seeEnd();
  const stream = await open();
  connection.off('readable', seeEnd);
  writeJson(connection, FRAME.result, null);
  await splice(connection as unknown as ByteStream, stream as unknown as ByteStream, { idleMs: STREAM_IDLE_MS });
}

async function passOn(from: Readable, connection: Duplex): Promise<void> {
  writeJson(connection, FRAME.result, null);
  for await (const chunk of from as AsyncIterable<Buffer>) {
    if (writeFrame(connection, FRAME.chunk, chunk)) continue;
    const drained = Promise.withResolvers<void>();
    connection.once('drain', drained.resolve).once('close', drained.resolve);
    await drained.promise;
    if (connection.destroyed) return;
  }
}
