// Shares a few places among many holders: a holder that sends hundreds of calls at once delays its
// own calls, not those of others.

export class FairQueue {
  readonly #places: number;
  #taken = 0;
  /** Waiting calls by holder. The first holder is next; it moves to the end with each place. */
  readonly #waiting = new Map<string, (() => void)[]>();

  constructor(places: number) {
    this.#places = places;
  }

  /** Runs the work in a place. Settles as the work does. */
  async run<T>(holder: string, work: () => Promise<T>): Promise<T> {
    if (this.#taken < this.#places) this.#taken += 1;
    else await this.#wait(holder);
    try {
      return await work();
    } finally {
      this.#passOn();
    }
  }

  #wait(holder: string): Promise<void> {
    return new Promise((resolve) => {
      const mine = this.#waiting.get(holder);
      if (mine === undefined) this.#waiting.set(holder, [resolve]);
      else mine.push(resolve);
    });
  }

  #passOn(): void {
    for (const [holder, mine] of this.#waiting) {
      const next = mine.shift();
      this.#waiting.delete(holder);
      if (mine.length > 0) this.#waiting.set(holder, mine);
      next?.();
      return;
    }
    this.#taken -= 1;
  }
}
