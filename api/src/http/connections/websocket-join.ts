// Joins a WebSocket with a connection into a sandbox: bytes in both directions with back-pressure,
// and pings. Closes with a reason when access ends. A dialect defines the frames.
import { WEBSOCKET } from '@berth/contract/route/limits.ts';
import { closeCodeOf, renewBearer, WEBSOCKET_CLOSE } from '@berth/contract/connections/websocket.ts';
import { parseJson } from '@berth/protocol/json-text.ts';
import type { FastifyBaseLogger } from 'fastify';
import type { WebSocket } from 'ws';
import { CodedError } from '../../rules/coded-error.ts';
import type { SandboxConnection } from '../../services/connections/connections.ts';

/** Limit of unsent bytes; beyond it, reading from the sandbox pauses. */
const UNSENT_BYTES = 1_048_576;
/**
 * A paused connection does not report that it broke. While a client is paused, a frame is written
 * at this interval, which then fails.
 */
const PROBE_MS = 1_000;
/** Longest reason in a close frame: 123 bytes. */
const REASON_CHARACTERS = 100;

/**
 * Result of a client's frame for the stream: bytes, the end of this direction, a pause or its end
 * for the other direction, or nothing.
 */
type Inbound = Uint8Array | 'end' | 'pause' | 'resume' | null;
/** Frame to a client: binary, or JSON text. */
export type Outbound = Uint8Array | { json: unknown };

/**
 * Frame protocol of a kind of WebSocket. Each method throws {@link InvalidFrame} for invalid
 * input.
 */
export interface Dialect {
  binary(frame: Buffer): Inbound;
  text(value: unknown): Inbound;
  /** Bytes from the sandbox. */
  received(chunk: Buffer): Outbound[];
  /** The sandbox ended its direction. */
  ended(): { send: Outbound[]; endOurs: boolean };
  /**
   * Sent while the client responds to pings, so that a stream in use does not count as silent;
   * null: nothing.
   */
  readonly alive: Uint8Array | null;
}

interface JoinOptions {
  log: FastifyBaseLogger;
  /** Defaults to the contract's interval. */
  pingEveryMs?: number | undefined;
  /** Limit of silence after one direction ended; the contract's by default. */
  halfOpenMs?: number | undefined;
}

/** An invalid frame of the client or of a misbehaving guest. */
export class InvalidFrame extends Error {
  override readonly name = 'InvalidFrame';
}

/**
 * Resolves with the close code when both the WebSocket and the connection are closed. Never
 * rejects.
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
  readonly #halfOpenMs: number;
  readonly #ping: NodeJS.Timeout;
  readonly #probe: NodeJS.Timeout;
  /** The other end showed activity since the last ping. */
  #alive = true;
  /** Runs once a direction has ended. */
  #silence: NodeJS.Timeout | undefined;
  #closing = false;
  /** The client takes no output. */
  #paused = false;
  /** The sandbox closed the connection: ignore the client's later frames without an error. */
  #through = false;

  constructor(
    websocket: WebSocket,
    connection: SandboxConnection,
    dialect: Dialect,
    { log, pingEveryMs = WEBSOCKET.pingEveryMs, halfOpenMs = WEBSOCKET.halfOpenMs }: JoinOptions,
  ) {
    this.#halfOpenMs = halfOpenMs;
    this.#websocket = websocket;
    this.#connection = connection;
    this.#dialect = dialect;
    this.#log = log;
    const { promise, resolve } = Promise.withResolvers<number>();
    this.closed = promise;
    this.#ping = setInterval(() => this.#checkAlive(), pingEveryMs);
    this.#probe = setInterval(() => {
      // An unsolicited pong needs no response.
      if (websocket.isPaused && websocket.bufferedAmount === 0) websocket.pong();
    }, PROBE_MS);
    websocket.on('pong', () => this.#answered());
    websocket.on('error', (error) => log.debug({ err: error }, 'WebSocket failed'));
    websocket.on('message', (data: Buffer, isBinary) => this.#onFrame(data, isBinary));
    websocket.once('close', (code) => {
      clearInterval(this.#ping);
      clearInterval(this.#probe);
      clearTimeout(this.#silence);
      connection.close();
      resolve(code);
    });
    void connection.over.then((why) => this.#closeFor(why));
    this.#readStream();
  }

  #readStream(): void {
    const { stream } = this.#connection;
    stream.on('error', (error) => this.#log.debug({ err: error }, 'connection to a sandbox failed'));
    stream.on('data', (chunk: Buffer) => {
      this.#silence?.refresh();
      this.#decode(WEBSOCKET_CLOSE.broken, () => this.#dialect.received(chunk).forEach((frame) => this.#send(frame)));
    });
    stream.on('drain', () => this.#websocket.resume());
    stream.once('end', () => this.#onStreamEnd());
    const closed = (): void => {
      if (stream.readableEnded && stream.writableFinished) this.#close(WEBSOCKET_CLOSE.ended, '');
      else void this.#closeBroken('the connection to the sandbox was lost');
    };
    if (stream.closed) closed();
    else stream.once('close', closed);
  }

  #onStreamEnd(): void {
    try {
      const { send, endOurs } = this.#dialect.ended();
      send.forEach((frame) => this.#send(frame));
      if (!endOurs) {
        this.#onHalfOpen();
        return;
      }
      this.#through = true;
      this.#connection.stream.end();
    } catch (error) {
      if (!(error instanceof InvalidFrame)) throw error;
      void this.#closeBroken(error.message);
    }
  }

  #onFrame(data: Buffer, isBinary: boolean): void {
    this.#alive = true;
    this.#decode(WEBSOCKET_CLOSE.notUnderstood, () => {
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
      else this.#log.warn({ err: error }, 'could not look up a new token of a WebSocket; the previous one stays valid');
    }
  }

  #write(inbound: Inbound): void {
    const { stream } = this.#connection;
    if (inbound === null || this.#closing || this.#through) return;
    if (inbound === 'pause' || inbound === 'resume') {
      this.#paused = inbound === 'pause';
      if (this.#paused) stream.pause();
      else this.#readOn();
      this.#limitInput();
      return;
    }
    if (stream.writableEnded) throw new InvalidFrame('no data may follow the end');
    if (inbound === 'end') {
      stream.end();
      this.#onHalfOpen();
      return;
    }
    this.#silence?.refresh();
    stream.write(inbound);
    this.#limitInput();
  }

  /** Reads no frames while the stream is full, unless the client must be able to end its pause. */
  #limitInput(): void {
    const { writableNeedDrain, writableLength } = this.#connection.stream;
    if (!this.#paused) {
      if (writableNeedDrain) this.#websocket.pause();
      return;
    }
    this.#websocket.resume();
    if (writableLength <= WEBSOCKET.pausedInputBytes) return;
    throw new InvalidFrame(`at most ${WEBSOCKET.pausedInputBytes} bytes of input may wait while output is paused`);
  }

  #send(frame: Outbound): void {
    const sent = (): void => {
      this.#alive = true;
      this.#silence?.refresh();
      this.#readOn();
    };
    if ('json' in frame) this.#websocket.send(JSON.stringify(frame.json), { binary: false }, sent);
    else this.#websocket.send(frame, { binary: true }, sent);
    if (this.#websocket.bufferedAmount > UNSENT_BYTES) this.#connection.stream.pause();
  }

  /** Reads from the sandbox again, unless output is unsent or the client takes none. */
  #readOn(): void {
    if (!this.#paused && this.#websocket.bufferedAmount <= UNSENT_BYTES / 2) this.#connection.stream.resume();
  }

  /** The side that ended may be gone: the other must not keep the connection by silence. */
  #onHalfOpen(): void {
    const reason = `silent for ${this.#halfOpenMs / 1_000} s after one direction ended`;
    this.#silence ??= setTimeout(() => this.#close(WEBSOCKET_CLOSE.broken, reason), this.#halfOpenMs);
  }

  #checkAlive(): void {
    // A paused client cannot respond: its pong would be queued behind unread frames.
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

  #decode(code: number, work: () => void): void {
    try {
      work();
    } catch (error) {
      if (!(error instanceof InvalidFrame)) throw error;
      this.#close(code, error.message);
    }
  }

  /** The host ends streams as soon as the VM stops, maybe before the notice of the new status. */
  async #closeBroken(reason: string): Promise<void> {
    const why = this.#closing ? null : await this.#connection.refusalAfterBreak();
    if (why === null) this.#close(WEBSOCKET_CLOSE.broken, reason);
    else this.#closeFor(why);
  }

  #closeFor(error: CodedError): void {
    this.#close(closeCodeOf(error.code), error.code);
  }

  #close(code: number, reason: string): void {
    if (this.#closing) return;
    this.#closing = true;
    this.#connection.close();
    // Resume, to read the response to the close frame.
    this.#websocket.resume();
    this.#websocket.close(code, reason.slice(0, REASON_CHARACTERS));
  }
}
