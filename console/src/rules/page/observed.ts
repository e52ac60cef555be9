/** A value that components follow with `useSyncExternalStore`. */
export class Observed<T> {
  readonly #listeners = new Set<() => void>();
  #value: T;

  constructor(value: T) {
    this.#value = value;
  }

  readonly get = (): T => this.#value;

  readonly set = (value: T): void => {
    if (this.#value === value) return;
    this.#value = value;
    for (const listener of this.#listeners) listener();
  };

  /** Calls the listener after each change. Returns a function that ends it. */
  readonly subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  };
}
