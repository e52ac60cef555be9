// A command in a sandbox whose three streams come here, over the terminal's WebSocket without a
// terminal (contract/src/connections/terminal.ts says how it speaks). Each stream holds the other end back.
// Must not know whose streams they are joined with.
import { Readable, Writable } from 'node:stream';
import { COMMAND_OUTPUT, terminalExit, terminalInSandbox } from '@berth/contract/connections/terminal.ts';
import { WEBSOCKET_CLOSE } from '@berth/contract/connections/websocket.ts';
import { parseJson } from '@berth/protocol/json-text.ts';
import type { WebSocket } from 'ws';
import { CliFailure, UsageError } from '../output/failure.ts';
import type { Connection } from '../service/connection.ts';
import { closedFailure, openApiWebSocket, type WebSocketTarget } from '../connections/websocket.ts';

/** The longest frame that is sent: the server takes 1 MiB. */
const FRAME_BYTES = 262_144;
/** What is read of stdin ahead of the sending. */
const AHEAD_BYTES = 1_048_576;
/** Of a command in the URL: the head of a request may have 16 KiB. */
const COMMAND_URL_BYTES = 14_336;

/**
 * The target of a command. Throws a UsageError for one that the head of a request has no room for.
 */
export function commandTarget(
  sandboxId: string,
  command: string,
  query: Readonly<Record<string, string>>,
): WebSocketTarget {
  const bytes = new URLSearchParams({ command }).toString().length;
  if (bytes > COMMAND_URL_BYTES) {
    throw new UsageError(
      `the command is too long: ${bytes} bytes as part of a URL, and at most ${COMMAND_URL_BYTES} may be`,
      {
        remedy: `put it into a file and pipe that in: berth exec -i ${sandboxId} -- sh -s < FILE`,
      },
    );
  }
  return { route: terminalInSandbox, sandboxId, query: { command, ...query } };
}

/**
 * Starts it; resolves once the sandbox has it. Aborting the signal later ends the connection, and
 * with it the command.
 */
export async function startRemoteCommand(
  connection: Connection,
  { sandboxId, command }: { sandboxId: string; command: string },
  signal: AbortSignal,
): Promise<RemoteCommand> {
  return new RemoteCommand(
    await openApiWebSocket(connection, commandTarget(sandboxId, command, { tty: 'false' }), signal),
    signal,
  );
}

export class RemoteCommand {
  /** Its end is passed on. Closed when the command has ended. */
  readonly stdin: Writable;
  /** Both must be read. They end with the command, and fail when the connection breaks before. */
  readonly stdout: Readable;
  readonly stderr: Readable;
  /**
   * The exit code, 128 + n for signal n, when all that was written has been handed over. Rejects
   * when nobody knows it, or with the signal's reason.
   */
  readonly ended: Promise<number>;
  readonly #socket: WebSocket;
  /** Streams that take no more for now. */
  readonly #full = new Set<Readable>();

  constructor(socket: WebSocket, signal: AbortSignal) {
    this.#socket = socket;
    this.stdout = this.#output();
    this.stderr = this.#output();
    this.stdin = new Writable({
      highWaterMark: AHEAD_BYTES,
      write: (chunk: Buffer, _encoding, done) => this.#send(chunk, done),
      final: (done) => {
        this.#say({ end: true });
        done();
      },
    });
    this.stdin.on('error', () => undefined);
    const { promise, resolve, reject } = Promise.withResolvers<number>();
    this.ended = promise;
    // Whoever waits for it later learns it then.
    promise.catch(() => undefined);
    let exit: number | undefined;
    let strange: CliFailure | undefined;
    socket.on('message', (data: Buffer, isBinary) => {
      if (isBinary) {
        if (this.#received(data)) return;
        strange = new CliFailure('the server sent output that is of neither stdout nor stderr');
        this.terminate();
      } else {
        exit = terminalExit.safeParse(parseJson(data.toString('utf8'))).data?.exit ?? exit;
      }
    });
    const onAbort = (): void => this.terminate();
    signal.addEventListener('abort', onAbort, { once: true });
    socket.once('close', (code, reason) => {
      signal.removeEventListener('abort', onAbort);
      // Whoever still writes learns that nobody reads.
      this.stdin.destroy();
      if (code === WEBSOCKET_CLOSE.ended && exit !== undefined) {
        this.stdout.push(null);
        this.stderr.push(null);
        resolve(exit);
        return;
      }
      const why = signal.aborted
        ? (signal.reason as Error)
        : (strange ?? closedFailure('the connection to the command', code, reason));
      reject(why);
      this.stdout.destroy(why);
      this.stderr.destroy(why);
    });
    if (signal.aborted) onAbort();
    socket.resume();
  }

  /** Sends a signal to the command's processes. */
  signal(name: string): void {
    this.#say({ signal: name });
  }

  /** Ends the connection, and with it the command's processes. */
  terminate(): void {
    this.#socket.terminate();
  }

  #output(): Readable {
    const stream = new Readable({
      read: () => {
        this.#full.delete(stream);
        if (this.#full.size === 0) this.#socket.resume();
      },
    });
    // Told by `ended`.
    stream.on('error', () => undefined);
    return stream;
  }

  /** Gives whether it is of a stream that there is. */
  #received(data: Buffer): boolean {
    const stream =
      data[0] === COMMAND_OUTPUT.stdout ? this.stdout : data[0] === COMMAND_OUTPUT.stderr ? this.stderr : null;
    if (stream === null) return false;
    if (data.length > 1 && !stream.destroyed && !stream.push(data.subarray(1))) {
      this.#full.add(stream);
      this.#socket.pause();
    }
    return true;
  }

  /** @param done called when the kernel has taken it, or nobody will */
  #send(chunk: Buffer, done: () => void): void {
    const rest = chunk.subarray(FRAME_BYTES);
    this.#socket.send(chunk.subarray(0, FRAME_BYTES), { binary: true }, () => {
      if (rest.length === 0) done();
      else this.#send(rest, done);
    });
  }

  #say(order: unknown): void {
    if (this.#socket.readyState === this.#socket.OPEN) this.#socket.send(JSON.stringify(order), { binary: false });
  }
}
