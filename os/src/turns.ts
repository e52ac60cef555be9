// Runs tasks one after another. A failure reaches its own caller and does not stop the next task.

export class Turns {
  #last: Promise<unknown> = Promise.resolve();

  take<T>(work: () => Promise<T>): Promise<T> {
    const mine = this.#last.then(work);
    // The failure is the caller's, who holds `mine`; the line only needs to know when it is over.
    this.#last = mine.catch(() => undefined);
    return mine;
  }

  /** Resolves when what was in line at the call is over. */
  async over(): Promise<void> {
    await this.#last;
  }
}
