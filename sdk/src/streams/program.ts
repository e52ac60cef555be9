// A program in a sandbox that is connected with this one: a terminal, or a command with its pipes.
import { BerthError } from '../transport/errors.ts';
import { COMMAND_OUTPUT, WEBSOCKET_CLOSE, type TERMINAL_SIGNALS } from '../generated/contract-tables.ts';
import { ByteSink, ByteSource } from './byte-streams.ts';
import { closedError, type Connection } from './connection.ts';

/** A signal that can be sent to a program. */
export type Signal = (typeof TERMINAL_SIGNALS)[number];

/** How a program ended. */
export interface Exit {
  /** 128 + n when signal n ended it. */
  exitCode: number;
  signal?: string;
}

/** Columns and rows, 1 to 1000 each. */
export interface TerminalSize {
  cols: number;
  rows: number;
}

/** What a program does with what it receives. */
interface Outputs {
  bytes(chunk: Uint8Array): void;
  end(failure: unknown): void;
}

abstract class Program {
  /**
   * Settles when the connection is closed and all output is in its streams. Rejects when the exit
   * code is unknown.
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
          // The exit is the server's last frame: nothing is missing, however the connection ends.
          const why =
            exited === undefined ? (failure ?? closedError(connection.what, WEBSOCKET_CLOSE.ended, '')) : null;
          outputs.end(why);
          if (exited === undefined) reject(why);
          else resolve(exited);
        },
      });
    });
    // A caller that awaits it later learns of a failure then.
    this.exited.catch(() => undefined);
  }

  /** Sends a signal to the process group in the foreground. */
  signal(name: Signal): void {
    this.#connection.sendOrder({ signal: name });
  }

  /** Ends the connection and with it the program, unless it has exited. */
  close(): void {
    this.#connection.close();
  }

  /** For `await using`. */
  [Symbol.asyncDispose](): Promise<void> {
    this.close();
    return Promise.resolve();
  }
}

/** A terminal in a sandbox, with its login shell or a command. */
export class SandboxTerminal extends Program {
  /** Output. */
  readonly readable: ReadableStream<Uint8Array>;
  /** Input: text, or bytes. Ctrl-C is `\u0003`. */
  readonly writable: WritableStream<Uint8Array | string>;
  readonly #connection: Connection;

  /** Made by the sandbox. */
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

/** A command in a sandbox with its pipes. */
export class SandboxCommand extends Program {
  /** Closing it gives the command the end of its input. Aborting it ends the command. */
  readonly stdin: WritableStream<Uint8Array | string>;
  /** Both outputs must be read or cancelled: one that is full holds the other one back. */
  readonly stdout: ReadableStream<Uint8Array>;
  readonly stderr: ReadableStream<Uint8Array>;

  /** Made by the sandbox. */
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
