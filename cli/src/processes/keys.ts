// Keys typed for a process: finds those that detach, and sends what was typed during a request
// with the next one.

const CTRL_P = 0x10;
const CTRL_Q = 0x11;
/** Keys that may wait before no more are read. */
const MOST_WAITING_BYTES = 65_536;

interface KeysTarget {
  send: (bytes: Uint8Array) => Promise<void>;
  /** Called for Ctrl-P Ctrl-Q, which are not sent; maybe more than once. */
  detach: () => void;
  /** Called with the failure of `send`, once. */
  fail: (error: unknown) => void;
}

export class Keys {
  /** Accepts keys while they are sent, so that a process that does not read can be detached. */
  readonly writable: WritableStream<Uint8Array | string>;
  readonly #target: KeysTarget;
  #afterCtrlP = false;
  #isDetaching = false;
  #waiting: Uint8Array[] = [];
  #sending: Promise<void> | undefined;

  constructor(target: KeysTarget) {
    this.#target = target;
    this.writable = new WritableStream({ write: async (chunk) => await this.#take(Buffer.from(chunk)) });
  }

  async #take(typed: Uint8Array): Promise<void> {
    if (this.#isDetaching) {
      this.#target.detach();
      return;
    }
    const sent: number[] = [];
    for (const key of typed) {
      this.#isDetaching = this.#afterCtrlP && key === CTRL_Q;
      if (this.#isDetaching) break;
      // Held until the next key shows its meaning.
      if (this.#afterCtrlP) sent.push(CTRL_P);
      this.#afterCtrlP = key === CTRL_P;
      if (!this.#afterCtrlP) sent.push(key);
    }
    if (sent.length > 0) {
      this.#waiting.push(Uint8Array.from(sent));
      this.#sending ??= this.#send();
    }
    if (this.#isDetaching) void this.#afterSending();
    else if (this.#waiting.reduce((sum, { length }) => sum + length, 0) > MOST_WAITING_BYTES) await this.#sending;
  }

  /** Detaches once the keys before are sent; a further key does so at once. */
  async #afterSending(): Promise<void> {
    await this.#sending;
    this.#target.detach();
  }

  async #send(): Promise<void> {
    try {
      while (this.#waiting.length > 0) await this.#target.send(Buffer.concat(this.#waiting.splice(0)));
    } catch (error) {
      this.#target.fail(error);
    }
    this.#sending = undefined;
  }
}
