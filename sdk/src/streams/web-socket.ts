// A WebSocket of the platform or of the npm package `ws`, behind one interface. With `ws` a slow
// reader holds the server back and a silent server is noticed. The WebSocket of the platform does
// neither, except that Bun's can be paused.
import { WEBSOCKET } from '../generated/limits.ts';

/**
 * A class of WebSockets: the global one, or `WebSocket` of the npm package `ws`, which Node 20 needs
 * and which gives Node back-pressure.
 */
export type WebSocketConstructor = new (url: string, protocols?: string[]) => object;

/** A response that refuses the upgrade, as Node's `http` gives it. */
export interface UpgradeResponse {
  statusCode?: number;
  headers: Readonly<Record<string, string | string[] | undefined>>;
  setEncoding(encoding: 'utf8'): AsyncIterable<string>;
}

interface SocketEvent {
  data?: unknown;
  code?: number;
  reason?: string;
  message?: string;
}

/** `on` is of `ws` alone, the other optional members of `ws` and Bun. */
interface AnyWebSocket {
  binaryType: string;
  readonly readyState: number;
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

/** Events of a socket. All are called after the constructor has returned. */
interface SocketHandlers {
  opened(): void;
  /** `ws` alone. */
  refused(response: UpgradeResponse): void;
  /** May be called before `closed`, with the words of the implementation. */
  failed(message: string): void;
  received(frame: Uint8Array | string): void;
  /** Called once. */
  closed(code: number, reason: string): void;
}

const OPEN = 1;
const NORMAL = 1000;
const UNSENT_BYTES = 1_048_576;
const DRAIN_POLL_MS = 10;
/** The server pings three times as often. */
const SILENCE_MS = 3 * WEBSOCKET.pingEveryMs;

/** Whether the class is that of `ws`, which takes headers and shows the response to a handshake. */
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
    any.addEventListener('open', () => handlers.opened());
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

  /** Resolves when more may be sent, also when the socket is closed: what is sent then is dropped. */
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

  /** Stops reading, where that is possible, until every stream that was full has room again. */
  hold(stream: object): void {
    this.#full.add(stream);
    this.#socket.pause?.();
  }

  release(stream: object): void {
    if (this.#full.delete(stream) && this.#full.size === 0) this.#socket.resume?.();
  }

  /** Ends the connection at once; what was not sent is lost. */
  terminate(): void {
    if (this.#socket.terminate === undefined) this.#socket.close(NORMAL);
    else this.#socket.terminate();
    this.#settle();
  }

  /** Says goodbye: the server closes when it has received all that was sent. */
  close(): void {
    this.#socket.resume?.();
    this.#socket.close(NORMAL);
  }

  #settle(): void {
    this.#closed = true;
    for (const resolve of this.#waiting) resolve();
  }

  /** The platform has no event for a buffer that drains. */
  #pollBuffer(): void {
    setTimeout(() => {
      if (this.#socket.bufferedAmount <= UNSENT_BYTES / 2) for (const resolve of this.#waiting) resolve();
      else if (this.#waiting.size > 0) this.#pollBuffer();
    }, DRAIN_POLL_MS);
  }

  /** Keeps a paused socket alive, and terminates one on which the server has been silent. */
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
      // A paused socket reads no pings: unsolicited pongs keep the server from cutting it off.
      if (socket.readyState === OPEN && socket.isPaused === true) socket.pong?.();
      // Without `on` pings are not seen.
      if (socket.on !== undefined && Date.now() - heardAtMs > SILENCE_MS) socket.terminate?.();
    }, WEBSOCKET.pingEveryMs / 2);
  }
}
