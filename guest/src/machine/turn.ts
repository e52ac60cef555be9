// One change of the machine at a time: identity, wake, size and template exclude one another.

/** Another change is under way. */
export class TurnTaken extends Error {
  override readonly name = 'TurnTaken';
}

export class Turn {
  #holder: string | undefined;

  /**
   * Runs the change, named for whoever comes meanwhile: they are refused with {@link TurnTaken}.
   */
  async run<T>(name: string, change: () => Promise<T>): Promise<T> {
    if (this.#holder !== undefined) throw new TurnTaken(`${this.#holder} is being applied; try again when it is done`);

    this.#holder = name;
    try {
      return await change();
    } finally {
      this.#holder = undefined;
    }
  }
}
