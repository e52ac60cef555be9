// Takes turns of connections that are drained: the refused bodies of an attack must not take the
// time of all requests.

const AT_ONCE = 8;

export class Drains {
  #running = 0;
  readonly #waiting = new Set<() => void>();

  /** Calls `start` as soon as it is this connection's turn. Returns the end of the turn. */
  enter(start: () => void): () => void {
    if (this.#running === AT_ONCE) {
      this.#waiting.add(start);
    } else {
      this.#running += 1;
      start();
    }
    return () => {
      if (this.#waiting.delete(start)) return;
      const [next] = this.#waiting;
      if (next === undefined) this.#running -= 1;
      else this.#waiting.delete(next);
      next?.();
    };
  }
}
