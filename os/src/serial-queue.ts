// Runs tasks in sequence. A failure rejects for its caller and does not stop the next task.

export class SerialQueue {
  #last: Promise<unknown> = Promise.resolve();

  run<T>(work: () => Promise<T>): Promise<T> {
    const mine = this.#last.then(work);
    // The caller handles the failure of `mine`; the queue only waits for it to settle.
    this.#last = mine.catch(() => undefined);
    return mine;
  }

  /** Resolves when all tasks queued at the call have settled. */
  async over(): Promise<void> {
    await this.#last;
  }
}
