// A TCP connection to a port of a sandbox.
import { ByteSink, ByteSource } from './byte-streams.ts';
import type { Connection } from './connection.ts';

export class SandboxTunnel {
  /** Ends when the sandbox's side has sent its last byte. */
  readonly readable: ReadableStream<Uint8Array>;
  /** Closing it is passed on as the end of this direction. */
  readonly writable: WritableStream<Uint8Array | string>;
  /** Resolves when both directions have ended; rejects when the tunnel broke. */
  readonly closed: Promise<void>;
  readonly #connection: Connection;

  /** Made by the sandbox. */
  constructor(connection: Connection) {
    const output = new ByteSource(connection);
    const input = new ByteSink(connection, () => connection.sendOrder({ end: true }));
    this.#connection = connection;
    this.readable = output.readable;
    this.writable = input.writable;
    this.closed = new Promise((resolve, reject) => {
      connection.attach({
        bytes: (chunk) => output.push(chunk),
        order: ({ end }) => {
          if (end === true) output.end(null);
        },
        ended: (failure) => {
          output.end(failure);
          input.end();
          if (failure === null) resolve();
          else reject(failure);
        },
      });
    });
    // A caller that awaits it later learns of a failure then.
    this.closed.catch(() => undefined);
  }

  /** Breaks the connection off. */
  close(): void {
    this.#connection.close();
  }

  /** For `await using`. */
  [Symbol.asyncDispose](): Promise<void> {
    this.close();
    return Promise.resolve();
  }
}
