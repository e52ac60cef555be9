// Takes turns of connections that are drained: the refused bodies of an attack must not take the
// time of all requests, nor the memory of what Node has read of each.

const AT_ONCE = 8;
/** Limit of waiting connections; each holds up to 128 KiB that Node has read. */
const WAITING = 256;

export class Drains {
  #running = 0;
  /** Starts of the waiting connections, and what closes them instead. */
  readonly #waiting = new Map<() => void, () => void>();

  /**
   * Calls `start` as soon as it is this connection's turn, or `giveUp` once it has waited longest
   * and too many wait. Returns the end of the turn.
   */
  enter(start: () => void, giveUp: () => void): () => void {
    let holds = false;
    const begin = (): void => {
      holds = true;
      this.#running += 1;
      start();
    };
    if (this.#running < AT_ONCE) begin();
    else this.#wait(begin, giveUp);
    return () => {
      this.#waiting.delete(begin);
      if (!holds) return;
      holds = false;
      this.#running -= 1;
      const [next] = this.#waiting.keys();
      if (next === undefined) return;
      this.#waiting.delete(next);
      next();
    };
  }

  #wait(begin: () => void, giveUp: () => void): void {
    this.#waiting.set(begin, giveUp);
    if (this.#waiting.size <= WAITING) return;
    const [oldest] = this.#waiting;
    if (oldest === undefined) return;
    this.#waiting.delete(oldest[0]);
    oldest[1]();
  }
}
