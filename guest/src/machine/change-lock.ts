// Serialises changes of the guest: identity, wake, size and template exclude one another.

/** Another change is in progress. */
export class ChangeInProgress extends Error {
  override readonly name = 'ChangeInProgress';
}

export class ChangeLock {
  #holder: string | undefined;

  /** Runs the change. Concurrent calls reject with {@link ChangeInProgress}, which names it. */
  async run<T>(name: string, change: () => Promise<T>): Promise<T> {
    if (this.#holder !== undefined)
      throw new ChangeInProgress(`${this.#holder} is being applied; try again when it is done`);

    this.#holder = name;
    try {
      return await change();
    } finally {
      this.#holder = undefined;
    }
  }
}
