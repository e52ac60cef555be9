// Counts what a guest's egress policy refuses. The guest chooses how often and where to: the memory
// is bounded.
import { EGRESS_LIMITS, type EgressDenied } from '@berth/protocol/egress.ts';

/** Time for which a destination is reported: longer than the service needs to note it. */
const RECENT_MS = 150_000;

export class DeniedAttempts {
  readonly #sinceUnixMs = Date.now();
  #count = 0;
  /** Times of the last attempts by destination, oldest first. */
  readonly #destinations = new Map<string, number>();

  /** @param destinations oldest first */
  add(count: number, destinations: readonly string[]): void {
    this.#count += count;
    for (const destination of destinations) {
      this.#destinations.delete(destination);
      this.#destinations.set(destination, performance.now());
    }
    const surplus = this.#destinations.size - EGRESS_LIMITS.deniedDestinations;
    for (const destination of [...this.#destinations.keys()].slice(0, Math.max(0, surplus)))
      this.#destinations.delete(destination);
  }

  /** Null before the first attempt. */
  report(): EgressDenied | null {
    if (this.#count === 0) return null;
    const from = performance.now() - RECENT_MS;
    const recent = [...this.#destinations].filter(([, atMs]) => atMs >= from).map(([destination]) => destination);
    return { sinceUnixMs: this.#sinceUnixMs, count: this.#count, destinations: recent.reverse() };
  }
}
