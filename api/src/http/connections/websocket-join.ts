// Joins a WebSocket with a connection into a sandbox: bytes both ways, each held back by the one
// that takes them; asks whether the other end is still there; closes with the reason when the
// connection may not stay. What frames mean is said by a dialect.
import { WEBSOCKET } from '@berth/contract/route/limits.ts';
import { closeCodeOf, renewBearer, WEBSOCKET_CLOSE } from '@berth/contract/connections/websocket.ts';
import { parseJson } from '@berth/protocol/json-text.ts';
import type { FastifyBaseLogger } from 'fastify';
import type { WebSocket } from 'ws';
import { CodedError } from '../../rules/coded-error.ts';
import type { SandboxConnection } from '../../services/connections/connections.ts';

/** Bytes under way to a slow reader beyond which no more is read for it. */
const UNSENT_BYTES = 1_048_576;
/**
 * A connection that is not read does not tell that it broke: while a client is held back, something
 * is written to it this often, which then fails.
 */
const PROBE_MS = 1_000;
/** Longest reason in a close frame: 123 bytes. */
const REASON_CHARACTERS = 100;

/** What a client's frame becomes on the stream: bytes, the end of this direction, or nothing. */
type Inbound = Uint8Array | 'end' | null;
/** What goes to a client: a binary frame, or a text frame of JSON. */
export type Outbound = Uint8Array | { json: unknown };

/**
 * How one kind of WebSocket speaks. Each method throws {@link NotUnderstood} for what it does not
 * understand.
 */
export interface Dialect {
  binary(frame: Buffer): Inbound;
  text(value: unknown): Inbound;
  /** Of what comes out of the sandbox. */
  received(chunk: Buffer): Outbound[];
  /** The sandbox's direction came to its end. */
  ended(): { send: Outbound[]; endOurs: boolean };
  /**
   * Sent as long as the client answers, so that a stream whose user is there does not count as
   * silent; null: nothing.
   */
  readonly alive: Uint8Array | null;
}

interface JoinOptions {
  log: FastifyBaseLogger;
  /** The contract's time when absent. */
  pingEveryMs?: number | undefined;
}

/** A frame that means nothing: of the client, or of a guest that is not as it should be. */
export class NotUnderstood extends Error {
  override readonly name = 'NotUnderstood';
}

/**
 * Resolves when the WebSocket is closed, with the close code; the connection is closed then too.
 * Never rejects.
 */
export async function join(
  websocket: WebSocket,
  connection: SandboxConnection,
  dialect: Dialect,
  options: JoinOptions,
): Promise<number> {
  return await new Join(websocket, connection, dialect, options).closed;
}

class Join {
  readonly closed: Promise<number>;
  readonly #websocket: WebSocket;
  readonly #connection: SandboxConnection;
  readonly #dialect: Dialect;
  readonly #log: FastifyBaseLogger;
  readonly #ping: NodeJS.Timeout;
  readonly #probe: NodeJS.Timeout;
  /** Since the last ping, something showed that the other end is there. */
  #alive = true;
  #closing = false;
  /**
   * The sandbox is through with the connection: what the client says from then on finds nobody,
   * through no fault of its own.
   */
  #through = false;

  constructor(
    websocket: WebSocket,
    connection: SandboxConnection,
    dialect: Dialect,
    { log, pingEveryMs = WEBSOCKET.pingEveryMs }: JoinOptions,
  ) {
    this.#websocket = websocket;
    this.#connection = connection;
    this.#dialect = dialect;
    this.#log = log;
    const { promise, resolve } = Promise.withResolvers<number>();
    this.closed = promise;
    this.#ping = setInterval(() => this.#askWhetherThere(), pingEveryMs);
    this.#probe = setInterval(() => {
      // One that nobody asked for wants no answer.
      if (websocket.isPaused && websocket.bufferedAmount === 0) websocket.pong();
    }, PROBE_MS);
    websocket.on('pong', () => this.#answered());
    websocket.on('error', (error) => log.debug({ err: error }, 'a WebSocket failed'));
    websocket.on('message', (data: Buffer, isBinary) => this.#onFrame(data, isBinary));
    websocket.once('close', (code) => {
      clearInterval(this.#ping);
      clearInterval(this.#probe);
      connection.close();
      resolve(code);
    });
    void connection.over.then((why) => this.#closeFor(why));
    this.#readStream();
  }

  #readStream(): void {
    const { stream } = this.#connection;
    stream.on('error', (error) => this.#log.debug({ err: error }, 'a connection into a sandbox failed'));
    stream.on('data', (chunk: Buffer) => {
      this.#understand(WEBSOCKET_CLOSE.broken, () =>
        this.#dialect.received(chunk).forEach((frame) => this.#send(frame)),
      );
    });
    stream.once('end', () => {
      this.#understand(WEBSOCKET_CLOSE.broken, () => {
        const { send, endOurs } = this.#dialect.ended();
        send.forEach((frame) => this.#send(frame));
        if (!endOurs) return;
        this.#through = true;
        stream.end();
      });
    });
    const closed = (): void => {
      if (stream.readableEnded && stream.writableFinished) this.#close(WEBSOCKET_CLOSE.ended, '');
      else void this.#closeBroken();
    };
    if (stream.closed) closed();
    else stream.once('close', closed);
  }

  #onFrame(data: Buffer, isBinary: boolean): void {
    this.#alive = true;
    this.#understand(WEBSOCKET_CLOSE.notUnderstood, () => {
      if (isBinary) {
        this.#write(this.#dialect.binary(data));
        return;
      }
      const value = parseJson(data.toString('utf8'));
      const renewal = renewBearer.safeParse(value);
      if (renewal.success) void this.#renew(renewal.data.bearer);
      else this.#write(this.#dialect.text(value));
    });
  }

  async #renew(token: string): Promise<void> {
    try {
      await this.#connection.renew(token);
    } catch (error) {
      if (error instanceof CodedError) this.#closeFor(error);
      else this.#log.warn({ err: error }, 'a token of a WebSocket could not be looked up; the former stays in force');
    }
  }

  #write(inbound: Inbound): void {
    const { stream } = this.#connection;
    if (inbound === null || this.#closing || this.#through) return;
    if (stream.writableEnded) throw new NotUnderstood('there is nothing to come after the end');
    if (inbound === 'end') {
      stream.end();
      return;
    }
    if (stream.write(inbound) || this.#websocket.isPaused) return;
    this.#websocket.pause();
    stream.once('drain', () => this.#websocket.resume());
  }

  #send(frame: Outbound): void {
    const sent = (): void => {
      this.#alive = true;
      if (this.#websocket.bufferedAmount <= UNSENT_BYTES / 2) this.#connection.stream.resume();
    };
    if ('json' in frame) this.#websocket.send(JSON.stringify(frame.json), { binary: false }, sent);
    else this.#websocket.send(frame, { binary: true }, sent);
    if (this.#websocket.bufferedAmount > UNSENT_BYTES) this.#connection.stream.pause();
  }

  #askWhetherThere(): void {
    // One that is held back cannot answer: its answer would be behind what is not read.
    if (!this.#alive && !this.#websocket.isPaused) {
      this.#websocket.terminate();
      return;
    }
    this.#alive = false;
    this.#websocket.ping();
  }

  #answered(): void {
    this.#alive = true;
    const { alive } = this.#dialect;
    const { stream } = this.#connection;
    if (alive !== null && stream.writable && !stream.writableNeedDrain) stream.write(alive);
  }

  #understand(code: number, work: () => void): void {
    try {
      work();
    } catch (error) {
      if (!(error instanceof NotUnderstood)) throw error;
      this.#close(code, error.message);
    }
  }

  async #closeBroken(): Promise<void> {
    const why = this.#closing ? null : await this.#connection.whyBroken();
    if (why === null) this.#close(WEBSOCKET_CLOSE.broken, 'the connection into the sandbox broke');
    else this.#closeFor(why);
  }

  #closeFor(error: CodedError): void {
    this.#close(closeCodeOf(error.code), error.code);
  }

  #close(code: number, reason: string): void {
    if (this.#closing) return;
    this.#closing = true;
    this.#connection.close();
    // The answer to the close frame is to be read.
    this.#websocket.resume();
    this.#websocket.close(code, reason.slice(0, REASON_CHARACTERS));
  }
}
