// The directions of a connection as web streams with back-pressure.
import { BerthError } from '../transport/errors.ts';
import type { Connection } from './connection.ts';

const QUEUE_BYTES = 262_144;
/** Limit of unread output if neither the WebSocket nor the server can be paused. */
const UNREAD_BYTES = 16_777_216;

const size = (chunk: Uint8Array | string | undefined): number =>
  typeof chunk === 'string' ? chunk.length : (chunk?.byteLength ?? 0);

/** Pieces from the sandbox. */
export class Source<T> {
  readonly readable: ReadableStream<T>;
  readonly #connection: Connection;
  #controller!: ReadableStreamDefaultController<T>;
  #open = true;

  /** @param bytesOf length of a piece */
  constructor(connection: Connection, bytesOf: (chunk: T) => number) {
    this.#connection = connection;
    this.readable = new ReadableStream<T>(
      {
        start: (controller) => {
          this.#controller = controller;
        },
        pull: () => connection.release(this),
        cancel: () => {
          this.#open = false;
          connection.release(this);
        },
      },
      { highWaterMark: QUEUE_BYTES, size: (chunk) => bytesOf(chunk) },
    );
  }

  /** @param chunk not empty */
  push(chunk: T): void {
    if (!this.#open) return;
    this.#controller.enqueue(chunk);
    const room = this.#controller.desiredSize ?? 0;
    if (room > 0) return;
    this.#connection.hold(this);
    if (room > -UNREAD_BYTES) return;
    this.#connection.fail(
      new BerthError(`cannot keep more than ${UNREAD_BYTES} unread bytes of ${this.#connection.what}. Read faster`, {
        code: 'reader_too_slow',
      }),
    );
  }

  /** @param failure null: queued bytes remain readable */
  end(failure: unknown): void {
    if (!this.#open) return;
    this.#open = false;
    if (failure === null) this.#controller.close();
    else this.#controller.error(failure);
  }
}

/** Bytes from the sandbox. */
export class ByteSource extends Source<Uint8Array> {
  constructor(connection: Connection) {
    super(connection, size);
  }

  override push(chunk: Uint8Array): void {
    if (chunk.byteLength > 0) super.push(chunk);
  }
}

/** Bytes to the sandbox. Aborting the stream closes the connection. */
export class ByteSink {
  readonly writable: WritableStream<Uint8Array | string>;
  readonly #connection: Connection;
  #controller!: WritableStreamDefaultController;

  /** @param close called after the last byte was sent */
  constructor(connection: Connection, close: () => void) {
    this.#connection = connection;
    const encoder = new TextEncoder();
    this.writable = new WritableStream<Uint8Array | string>(
      {
        start: (controller) => {
          this.#controller = controller;
        },
        write: (chunk) => connection.sendBytes(typeof chunk === 'string' ? encoder.encode(chunk) : chunk),
        close,
        abort: (reason: unknown) => connection.close(reason),
      },
      { highWaterMark: QUEUE_BYTES, size },
    );
  }

  /** Makes further writes fail. */
  end(): void {
    this.#controller.error(
      new BerthError(`${this.#connection.what} has ended and reads no input`, { code: 'stream_closed' }),
    );
  }
}
