// A program in a sandbox with streams: a terminal, or a command with pipes.
import { BerthError } from '../transport/errors.ts';
import { COMMAND_OUTPUT, WEBSOCKET_CLOSE, type TERMINAL_SIGNALS } from '../generated/contract-tables.ts';
import { ByteSink, ByteSource } from './byte-streams.ts';
import { closedError, type Connection } from './connection.ts';

export type Signal = (typeof TERMINAL_SIGNALS)[number];

/** Exit of a program. */
export interface Exit {
  /** 128 + n if signal n killed it. */
  exitCode: number;
  signal?: string;
}

/** Columns and rows, 1 to 1000 each. */
export interface TerminalSize {
  cols: number;
  rows: number;
}

/** Consumers of the received bytes. */
interface Outputs {
  bytes(chunk: Uint8Array): void;
  end(failure: unknown): void;
}

abstract class Program {
  /**
   * Settles after the connection closed and all output is in its streams. Rejects if the exit code
   * is unknown.
   */
  readonly exited: Promise<Exit>;
  readonly #connection: Connection;

  constructor(connection: Connection, outputs: Outputs) {
    this.#connection = connection;
    this.exited = new Promise((resolve, reject) => {
      let exited: Exit | undefined;
      connection.attach({
        bytes: (chunk) => outputs.bytes(chunk),
        order: ({ exit, signal }) => {
          if (Number.isInteger(exit))
            exited = { exitCode: exit as number, ...(typeof signal === 'string' ? { signal } : {}) };
        },
        ended: (failure) => {
          // The exit is the server's last frame: nothing is missing after it.
          const why =
            exited === undefined ? (failure ?? closedError(connection.what, WEBSOCKET_CLOSE.ended, '')) : null;
          outputs.end(why);
          if (exited === undefined) reject(why);
          else resolve(exited);
        },
      });
    });
    // Avoid an unhandled rejection before the caller awaits.
    this.exited.catch(() => undefined);
  }

  /** Sends a signal to the foreground process group. */
  signal(name: Signal): void {
    this.#connection.sendOrder({ signal: name });
  }

  /**
   * Lets the server hold the output; the program blocks once the buffers on the way are full. Bytes
   * already sent still arrive. The close of a connection is seen, unlike with an unread stream.
   */
  pause(): void {
    this.#connection.pause(this);
  }

  /** Ends {@link pause}. */
  resume(): void {
    this.#connection.resume(this);
  }

  /** Replaces an access token before it expires by another of its user; at most every 10 s. */
  renew(token: string): void {
    this.#connection.sendOrder({ bearer: token });
  }

  /** Closes the connection, which kills the program unless it is the agent's. */
  close(): void {
    this.#connection.close();
  }

  /** For `await using`. */
  [Symbol.asyncDispose](): Promise<void> {
    this.close();
    return Promise.resolve();
  }
}

/** A terminal with the login shell, a command or the agent. */
export class SandboxTerminal extends Program {
  readonly readable: ReadableStream<Uint8Array>;
  /** Text or bytes. Ctrl-C is `\u0003`. */
  readonly writable: WritableStream<Uint8Array | string>;
  readonly #connection: Connection;

  /** Constructed by the SDK. */
  constructor(connection: Connection) {
    const output = new ByteSource(connection);
    const input = new ByteSink(connection, () => undefined);
    super(connection, {
      bytes: (chunk) => output.push(chunk),
      end: (failure) => {
        output.end(failure);
        input.end();
      },
    });
    this.#connection = connection;
    this.readable = output.readable;
    this.writable = input.writable;
  }

  resize({ cols, rows }: TerminalSize): void {
    this.#connection.sendOrder({ resize: { cols, rows } });
  }
}

/** A command with pipes. */
export class SandboxCommand extends Program {
  /** Closing it ends the command's stdin. Aborting it kills the command. */
  readonly stdin: WritableStream<Uint8Array | string>;
  /** Read or cancel both outputs: a full one blocks the other. */
  readonly stdout: ReadableStream<Uint8Array>;
  readonly stderr: ReadableStream<Uint8Array>;

  /** Constructed by the SDK. */
  constructor(connection: Connection) {
    const stdin = new ByteSink(connection, () => connection.sendOrder({ end: true }));
    const stdout = new ByteSource(connection);
    const stderr = new ByteSource(connection);
    super(connection, {
      bytes: (chunk) => {
        const output =
          chunk[0] === COMMAND_OUTPUT.stdout ? stdout : chunk[0] === COMMAND_OUTPUT.stderr ? stderr : undefined;
        if (output === undefined) {
          const message = 'the server sent output for neither stdout nor stderr';
          connection.fail(new BerthError(message, { code: 'invalid_answer' }));
        } else {
          output.push(chunk.subarray(1));
        }
      },
      end: (failure) => {
        stdout.end(failure);
        stderr.end(failure);
        stdin.end();
      },
    });
    this.stdin = stdin.writable;
    this.stdout = stdout.readable;
    this.stderr = stderr.readable;
  }
}
