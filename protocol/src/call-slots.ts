// Limits concurrent calls: more calls wait in a queue, and are refused when it is full. Imports
// nothing.

/** The queue is full. */
export class LineFull extends Error {
  override readonly name = 'LineFull';
}

export class CallSlots {
  readonly #atOnce: number;
  readonly #waiting: number;
  readonly #line: (() => void)[] = [];
  #free: number;

  constructor({ atOnce, waiting }: { atOnce: number; waiting: number }) {
    this.#atOnce = atOnce;
    this.#free = atOnce;
    this.#waiting = waiting;
  }

  /** No slot is held. */
  get isFree(): boolean {
    return this.#free === this.#atOnce;
  }

  /**
   * Resolves when a slot is free, with the function that releases it. Rejects with {@link
   * LineFull}, or with the signal's reason, which must be an Error; no slot is held then.
   */
  async take(signal: AbortSignal): Promise<() => void> {
    signal.throwIfAborted();
    if (this.#free > 0) this.#free -= 1;
    else if (this.#line.length < this.#waiting) await this.#wait(signal);
    else throw new LineFull('too many calls at once');

    let held = true;
    return () => {
      if (held) {
        held = false;
        this.#release();
      }
    };
  }

  #wait(signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const next = (): void => {
        signal.removeEventListener('abort', leave);
        resolve();
      };
      const leave = (): void => {
        this.#line.splice(this.#line.indexOf(next), 1);
        reject(signal.reason as Error);
      };
      signal.addEventListener('abort', leave, { once: true });
      this.#line.push(next);
    });
  }

  /** Passes the slot to the next waiter. */
  #release(): void {
    const next = this.#line.shift();
    if (next === undefined) this.#free += 1;
    else next();
  }
}
