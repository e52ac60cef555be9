// A connection to a sandbox: binary and JSON frames, close reasons and back-pressure. The receiver
// interprets the frames.
import { BerthError } from '../transport/errors.ts';
import { OUTCOME_SUBPROTOCOL, WEBSOCKET_CLOSE } from '../generated/contract-tables.ts';
import { WEBSOCKET } from '../generated/limits.ts';
import { parseJson } from '../transport/transport.ts';
import { Socket, type UpgradeResponse } from './web-socket.ts';

/** Interprets the frames of a connection. */
interface Receiver {
  bytes(chunk: Uint8Array): void;
  /** Called with the object of a text frame. */
  order(value: Readonly<Record<string, unknown>>): void;
  /** Called once. @param failure null when the server closed with 1000 */
  ended(failure: unknown): void;
}

const FRAME_BYTES = 262_144;
/** Input sent during a pause: keys pass, and the server's limit is not reached. */
const PAUSED_INPUT_BYTES = WEBSOCKET.pausedInputBytes / 4;

const CLOSE_REASONS: Readonly<Record<string, string>> = {
  sandbox_state_conflict: 'the sandbox is no longer awake',
  sandbox_not_found: 'the sandbox no longer exists',
  unauthenticated: 'the API key was revoked or has expired',
  permission_denied: 'the API key may no longer connect to sandboxes',
  org_access_denied: 'the API key no longer has access to the org',
  shutting_down: 'the server is shutting down; try again',
};

/** Close codes without a reason; 1006: no close frame. */
const WITHOUT_REASON: Readonly<Record<number, string>> = {
  [WEBSOCKET_CLOSE.ended]: 'the server closed the connection',
  [WEBSOCKET_CLOSE.goingAway]: 'the server is shutting down',
  1006: 'the connection to the server was lost',
};

/** Error of a stream that was closed early. */
export function closedError(what: string, code: number, reason: string): BerthError {
  const words = CLOSE_REASONS[reason] ?? (reason === '' ? (WITHOUT_REASON[code] ?? `code ${code}`) : reason);
  return new BerthError(`${what} was closed: ${words}`, { code: reason in CLOSE_REASONS ? reason : 'stream_closed' });
}

/** A refusal in the first frame of the server. */
interface Refused {
  status?: unknown;
  requestId?: unknown;
  retryAfter?: unknown;
  body?: unknown;
}

/** A failed opening: the server's response or frame, or the implementation's message. */
export type OpenFailure = { response: UpgradeResponse } | { refused: Refused } | { message: string };

export class Connection {
  /** Name for messages. */
  readonly what: string;
  /** Null once open. */
  readonly opened: Promise<OpenFailure | null>;
  readonly #socket: Socket;
  readonly #settle: (outcome: OpenFailure | null) => void;
  #receiver: Receiver | undefined;
  readonly #listeners: (() => void)[] = [];
  /** Reasons for which the server holds the output. */
  readonly #pauses = new Set<object>();
  /** Input since the pause, and its waiting senders. */
  #pausedInput = 0;
  #waiting: (() => void)[] = [];
  /** The server's first frame tells whether it is open. */
  #awaitsOutcome = false;
  #ended = false;

  constructor(what: string, webSocket: object) {
    this.what = what;
    let settle!: (outcome: OpenFailure | null) => void;
    this.opened = new Promise((resolve) => {
      settle = resolve;
    });
    this.#settle = settle;
    let words = '';
    this.#socket = new Socket(webSocket, {
      opened: (protocol) => {
        this.#awaitsOutcome = protocol === OUTCOME_SUBPROTOCOL;
        if (!this.#awaitsOutcome) settle(null);
      },
      refused: (response) => settle({ response }),
      failed: (message) => {
        words = message.trim();
      },
      received: (frame) => this.#onFrame(frame),
      closed: (code, reason) => {
        settle({ message: words });
        this.#end(code === WEBSOCKET_CLOSE.ended ? null : closedError(what, code, reason));
      },
    });
  }

  /** Calls the listener when the connection ends, or at once if it has. */
  onEnd(listener: () => void): void {
    if (this.#ended) listener();
    else this.#listeners.push(listener);
  }

  /** Must be called before control returns to the event loop. */
  attach(receiver: Receiver): void {
    this.#receiver = receiver;
  }

  /** Resolves when more can be sent. */
  async sendBytes(chunk: Uint8Array): Promise<void> {
    for (let at = 0; at < chunk.byteLength; at += FRAME_BYTES) {
      const frame = chunk.subarray(at, at + FRAME_BYTES);
      while (this.#pauses.size > 0 && this.#pausedInput + frame.byteLength > PAUSED_INPUT_BYTES && !this.#ended)
        await new Promise<void>((resolve) => this.#waiting.push(resolve));
      if (this.#pauses.size > 0) this.#pausedInput += frame.byteLength;
      await this.#socket.send(frame);
    }
  }

  sendOrder(order: object): void {
    void this.#socket.send(JSON.stringify(order));
  }

  /** Stops reading until {@link release} was called for every held stream. */
  hold(stream: object): void {
    if (this.#socket.canHold) this.#socket.hold(stream);
    else this.pause(stream);
  }

  release(stream: object): void {
    this.#socket.release(stream);
    this.resume(stream);
  }

  /** Lets the server hold the output until {@link resume} was called for every reason. */
  pause(reason: object): void {
    if (this.#pauses.has(reason)) return;
    if (this.#pauses.add(reason).size === 1) this.sendOrder({ pause: true });
  }

  resume(reason: object): void {
    if (!this.#pauses.delete(reason) || this.#pauses.size > 0) return;
    this.sendOrder({ pause: false });
    this.#releaseInput();
  }

  /** Terminates the connection. Streams and promises fail with the reason. */
  fail(reason: unknown): void {
    if (this.#ended) return;
    this.#socket.terminate();
    this.#settle({ message: '' });
    this.#end(reason);
  }

  /** Terminates the connection on behalf of the caller. */
  close(reason?: unknown): void {
    this.fail(reason ?? new BerthError(`${this.what} was closed by the client`, { code: 'stream_closed' }));
  }

  #releaseInput(): void {
    this.#pausedInput = 0;
    for (const resolve of this.#waiting.splice(0)) resolve();
  }

  #onFrame(frame: Uint8Array | string): void {
    if (this.#ended) return;
    if (typeof frame !== 'string') {
      this.#receiver?.bytes(frame);
      return;
    }
    const value = parseJson(frame);
    if (typeof value !== 'object' || value === null) return;
    if (!this.#awaitsOutcome) {
      this.#receiver?.order(value as Record<string, unknown>);
      return;
    }
    this.#awaitsOutcome = false;
    this.#settle('refused' in value ? { refused: value.refused as Refused } : null);
  }

  #end(failure: unknown): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#releaseInput();
    this.#receiver?.ended(failure);
    for (const listener of this.#listeners) listener();
  }
}
