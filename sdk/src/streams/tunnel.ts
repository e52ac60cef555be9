// A TCP connection to a port of a sandbox.
import { ByteSink, ByteSource } from './byte-streams.ts';
import type { Connection } from './connection.ts';

export class SandboxTunnel {
  /** Ends after the last byte from the sandbox. */
  readonly readable: ReadableStream<Uint8Array>;
  /** Closing it ends this direction. */
  readonly writable: WritableStream<Uint8Array | string>;
  /** Resolves when both directions have ended; rejects on a broken connection. */
  readonly closed: Promise<void>;
  readonly #connection: Connection;

  /** Constructed by the SDK. */
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
    // Avoid an unhandled rejection before the caller awaits.
    this.closed.catch(() => undefined);
  }

  /** Replaces an access token before it expires by another of its user; at most every 10 s. */
  renew(token: string): void {
    this.#connection.sendOrder({ bearer: token });
  }

  /** Terminates the connection. */
  close(): void {
    this.#connection.close();
  }

  /** For `await using`. */
  [Symbol.asyncDispose](): Promise<void> {
    this.close();
    return Promise.resolve();
  }
}
