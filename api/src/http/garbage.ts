// Collects garbage after a peak of load. V8 collects as objects are allocated: without further load
// it keeps what a peak left, up to several hundred MiB. Figures: docs/decisions/api-memory.md.

/** Memory of an open connection: its objects, and what Node has read. */
export const CONNECTION_BYTES = 65_536;
/** Smaller peaks leave little. */
const LEAST_PEAK_BYTES = 16 * 1_048_576;
/** A peak is over at this part of it. */
const OVER_AT = 1 / 4;

/** Quiet observations after a peak until the collection. */
const QUIET = 3;

/**
 * Collects all garbage, and returns the pages that V8 keeps for reuse. The collection stops the
 * process, so it waits for quiet: repeated peaks cause none.
 */
export class GarbageAfterPeaks {
  readonly #collect: () => void;
  #peakBytes = 0;
  /** Observations since the last peak; null after the collection. */
  #quiet: number | null = null;

  constructor(collect: () => void) {
    this.#collect = collect;
  }

  /** Call it at intervals, with the bytes that open requests and connections hold. */
  observe(bytes: number): void {
    this.#peakBytes = Math.max(this.#peakBytes, bytes);
    if (this.#peakBytes >= LEAST_PEAK_BYTES) {
      this.#quiet = null;
      if (bytes > this.#peakBytes * OVER_AT) return;
      this.#quiet = 0;
    }
    this.#peakBytes = bytes;
    if (this.#quiet === null || ++this.#quiet < QUIET) return;
    this.#quiet = null;
    this.#collect();
  }
}
