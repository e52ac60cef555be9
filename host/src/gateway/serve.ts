// The gateway's part of a call: speaks HTTP to the guest daemon, validates its response, and passes
// the result to the host daemon. Runs without privileges, in main.ts.
import { Readable, type Duplex } from 'node:stream';
import type { CallSpec } from '@berth/protocol/calls/define.ts';
import { splice, type ByteStream } from '@berth/protocol/splice.ts';
import { DirectGuestClient, type GuestRequest } from '../guest/client.ts';
import { newQuestions } from '../network/dns/questions.ts';
import { FRAME, FrameReader, writeFrame, writeJson } from './frames.ts';
import { failureOf, gatewayOrder, GUEST_CALLS, type GatewayOrder } from './order.ts';

const ORDER_BYTES = 16 * 1_048_576;
/** A day: the streams' limits are the host daemon's. */
const STREAM_IDLE_MS = 86_400_000;

export class GatewayServer {
  readonly #guests = new Map<string, DirectGuestClient>();
  readonly #questions = newQuestions();

  /** Serves one connection of the host daemon. Never rejects. */
  async serve(connection: Duplex): Promise<void> {
    const gone = new AbortController();
    const onGone = (): void => gone.abort(new Error('the host daemon ended the call'));
    connection.on('error', () => undefined);
    // Its end alone does not close a connection that can be half-closed.
    connection.once('end', onGone).once('close', onGone);
    const reader = new FrameReader(connection);
    try {
      const frame = await reader.frame(ORDER_BYTES);
      if (frame === null) return;
      const order = gatewayOrder.parse(JSON.parse(frame.payload.toString('utf8')));
      await this.#carryOut(order, connection, reader, gone);
    } catch (error) {
      if (connection.writable) writeJson(connection, FRAME.failure, failureOf(error));
    } finally {
      connection.end();
    }
  }

  async #carryOut(order: GatewayOrder, connection: Duplex, reader: FrameReader, gone: AbortController): Promise<void> {
    if (order.do === 'close') {
      this.#guests.get(order.guest)?.close();
      this.#guests.delete(order.guest);
      return;
    }
    if (order.do === 'answer') {
      const { message, ...rest } = order;
      reader.release();
      connection.on('readable', () => void connection.read(0)).read(0);
      const { answer, withheld, ...found } = await this.#questions(
        { ...rest, bytes: Buffer.from(message, 'base64') },
        gone.signal,
      );
      writeJson(connection, FRAME.result, {
        ...found,
        answer: answer?.toString('base64') ?? null,
        withheld: withheld?.toString('base64') ?? null,
      });
      return;
    }
    const guest = this.#guestOf(order);
    const { deadlineMs } = order;
    const options = { signal: gone.signal, deadlineMs };
    const seeEnd = (): void => void connection.read(0);
    const watch = (): void => {
      reader.release();
      connection.on('readable', seeEnd);
      seeEnd();
    };
    if (order.do === 'reach') {
      watch();
      await guest.reach(options);
      writeJson(connection, FRAME.result, null);
      return;
    }
    const call = GUEST_CALLS.get(order.call);
    if (call === undefined) throw new Error(`unknown call ${order.call}`);
    const request = { ...order.parts } as GuestRequest<CallSpec>;
    if (order.uploadBytes === null) {
      watch();
    } else {
      const { uploadBytes: bytes } = order;
      const content = uploadOf(reader, bytes, (fault) => (fault === null ? watch() : gone.abort(fault)));
      request.upload = { bytes, content };
    }
    switch (order.do) {
      case 'call':
        return writeJson(connection, FRAME.result, await guest.call(call, request, options));
      case 'stream':
        return await passOn(await guest.stream(call, request, options), connection);
      case 'open': {
        const stream = await guest.open(call, request, options);
        connection.off('readable', seeEnd);
        writeJson(connection, FRAME.result, null);
        await splice(connection as unknown as ByteStream, stream as unknown as ByteStream, { idleMs: STREAM_IDLE_MS });
        return;
      }
      default:
    }
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

async function passOn(from: Readable, connection: Duplex): Promise<void> {
  writeJson(connection, FRAME.result, null);
  for await (const chunk of from as AsyncIterable<Buffer>) {
    if (writeFrame(connection, FRAME.chunk, chunk)) continue;
    const drained = Promise.withResolvers<void>();
    connection.once('drain', drained.resolve).once('close', drained.resolve);
    await drained.promise;
    if (connection.destroyed) return;
  }
  writeFrame(connection, FRAME.end);
}
