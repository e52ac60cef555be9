// Interface over the runtime's WebSocket and the npm package `ws`. `ws` has back-pressure and
// detects silent servers. Among the runtimes' own, only Bun's can be paused.
import { WEBSOCKET } from '../generated/limits.ts';

/**
 * A WebSocket class: the global one, or that of the npm package `ws`. Node 20 needs `ws`.
 */
export type WebSocketConstructor = new (url: string, protocols?: string[]) => object;

/** Response to a refused upgrade, from Node's `http`. */
export interface UpgradeResponse {
  statusCode?: number;
  headers: Readonly<Record<string, string | string[] | undefined>>;
  setEncoding(encoding: 'utf8'): AsyncIterable<string>;
  destroy(): void;
}

interface SocketEvent {
  data?: unknown;
  code?: number;
  reason?: string;
  message?: string;
}

/** Only `ws` has `on`; `ws` and Bun have the other optional members. */
interface AnyWebSocket {
  binaryType: string;
  readonly readyState: number;
  /** Selected subprotocol. */
  readonly protocol: string;
  readonly bufferedAmount: number;
  readonly isPaused?: boolean;
  send(data: string | Uint8Array, sent?: () => void): void;
  close(code: number): void;
  addEventListener(name: 'open' | 'message' | 'error' | 'close', listener: (event: SocketEvent) => void): void;
  pause?(): void;
  resume?(): void;
  pong?(): void;
  terminate?(): void;
  on?(name: 'ping', listener: () => void): void;
  on?(name: 'unexpected-response', listener: (request: unknown, response: UpgradeResponse) => void): void;
}

/** Socket events, called only after the constructor returned. */
interface SocketHandlers {
  /** @param protocol selected by the server */
  opened(protocol: string): void;
  /** Only with `ws`. */
  refused(response: UpgradeResponse): void;
  /** May precede `closed`, with the implementation's message. */
  failed(message: string): void;
  received(frame: Uint8Array | string): void;
  /** Called once. */
  closed(code: number, reason: string): void;
}

const OPEN = 1;
const NORMAL = 1000;
const UNSENT_BYTES = 1_048_576;
const DRAIN_POLL_MS = 10;
/** Three ping intervals of the server. */
const SILENCE_MS = 3 * WEBSOCKET.pingEveryMs;

/** Detects `ws`, which takes headers and exposes the handshake response. */
export function isNodeWebSocket(implementation: WebSocketConstructor): boolean {
  return typeof (implementation.prototype as { on?: unknown }).on === 'function';
}

export class Socket {
  readonly #socket: AnyWebSocket;
  readonly #withCallback: boolean;
  /** Streams whose queue is full. */
  readonly #full = new Set<object>();
  /** Resolve functions of sends that wait for the buffer to drain. */
  readonly #waiting = new Set<() => void>();
  #closed = false;

  constructor(socket: object, handlers: SocketHandlers) {
    const any = socket as AnyWebSocket;
    this.#socket = any;
    this.#withCallback = any.on !== undefined;
    if (any.binaryType === 'blob') any.binaryType = 'arraybuffer';
    any.addEventListener('open', () => handlers.opened(any.protocol));
    any.addEventListener('error', ({ message }) => handlers.failed(message ?? ''));
    any.addEventListener('message', ({ data }) => {
      if (!this.#closed) handlers.received(data instanceof ArrayBuffer ? new Uint8Array(data) : (data as Uint8Array));
    });
    const heartbeat = this.#keepAlive();
    any.addEventListener('close', ({ code = 1006, reason = '' }) => {
      clearInterval(heartbeat);
      this.#settle();
      handlers.closed(code, reason);
    });
    any.on?.('unexpected-response', (_request, response) => handlers.refused(response));
  }

  /** Resolves when more can be sent. A closed socket drops the data. */
  send(data: string | Uint8Array): Promise<void> {
    return new Promise((resolve) => {
      const socket = this.#socket;
      if (this.#closed || socket.readyState !== OPEN) {
        resolve();
        return;
      }
      const sent = (): void => {
        this.#waiting.delete(sent);
        resolve();
      };
      if (this.#withCallback) socket.send(data, sent);
      else socket.send(data);
      if (socket.bufferedAmount <= UNSENT_BYTES) {
        sent();
        return;
      }
      this.#waiting.add(sent);
      if (!this.#withCallback && this.#waiting.size === 1) this.#pollBuffer();
    });
  }

  /** Whether {@link hold} has an effect. */
  get canHold(): boolean {
    return this.#socket.pause !== undefined;
  }

  /** Stops reading, if possible, until every full stream has room. */
  hold(stream: object): void {
    this.#full.add(stream);
    this.#socket.pause?.();
  }

  release(stream: object): void {
    if (this.#full.delete(stream) && this.#full.size === 0) this.#socket.resume?.();
  }

  /** Closes immediately and drops unsent data. */
  terminate(): void {
    if (this.#socket.terminate === undefined) this.#socket.close(NORMAL);
    else this.#socket.terminate();
    this.#settle();
  }

  /** Closes after the server received all data. */
  close(): void {
    this.#socket.resume?.();
    this.#socket.close(NORMAL);
  }

  #settle(): void {
    this.#closed = true;
    for (const resolve of this.#waiting) resolve();
  }

  /** The runtime's WebSocket has no event for a drained buffer. */
  #pollBuffer(): void {
    setTimeout(() => {
      if (this.#socket.bufferedAmount <= UNSENT_BYTES / 2) for (const resolve of this.#waiting) resolve();
      else if (this.#waiting.size > 0) this.#pollBuffer();
    }, DRAIN_POLL_MS);
  }

  /** Keeps a paused socket alive, and terminates it if the server is silent. */
  #keepAlive(): ReturnType<typeof setInterval> | undefined {
    const socket = this.#socket;
    if (socket.pong === undefined) return undefined;
    let heardAtMs = Date.now();
    const heard = (): void => {
      heardAtMs = Date.now();
    };
    socket.on?.('ping', heard);
    socket.addEventListener('message', heard);
    return setInterval(() => {
      if (socket.readyState !== OPEN || socket.isPaused === true) heard();
      // A paused socket reads no pings: send pongs so that the server keeps it.
      if (socket.readyState === OPEN && socket.isPaused === true) socket.pong?.();
      // Pings are invisible without `on`.
      if (socket.on !== undefined && Date.now() - heardAtMs > SILENCE_MS) socket.terminate?.();
    }, WEBSOCKET.pingEveryMs / 2);
  }
}
