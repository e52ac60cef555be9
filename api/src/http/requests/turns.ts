// Spreads computations over the turns of the event loop: together they delay other requests by
// milliseconds, however many run at once.

/** Time for the computations of a turn. */
const TURN_MS = 2;

export class Turns {
  #spentMs = 0;
  #next: Promise<void> | undefined;

  /** Runs the work in this turn, or in a later one while other work fills the turns. */
  async run<T>(work: () => T): Promise<T> {
    while (this.#spentMs >= TURN_MS) await this.#nextTurn();
    void this.#nextTurn();
    const startedAt = performance.now();
    try {
      return work();
    } finally {
      this.#spentMs += performance.now() - startedAt;
    }
  }

  #nextTurn(): Promise<void> {
    this.#next ??= new Promise((resolve) => {
      setImmediate(() => {
        this.#spentMs = 0;
        this.#next = undefined;
        resolve();
      });
    });
    return this.#next;
  }
}
