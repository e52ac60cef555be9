// Pause between requests that are held until there is something new. Changes now and then are seen
// at once; in the long run there is one request a second, with the reads that a change causes. All
// pages of a person share 600 a minute.
const LEAST_MS = 100;
const STEADY_MS = 1_000;
/** Requests at the short pause after a quiet time. */
const BURST = 200;
const FAILED_MS = { least: 1_000, most: 30_000 };

export class Pace {
  #left = BURST;
  #pauseMs = 0;
  #failedMs = FAILED_MS.least;

  /**
   * Pause after a response that took as long.
   * @param requests sent for it, with the reads that it caused
   */
  after(tookMs: number, requests: number): number {
    this.#failedMs = FAILED_MS.least;
    this.#left = Math.min(BURST, this.#left + (this.#pauseMs + tookMs) / STEADY_MS) - requests;
    this.#pauseMs = this.#left >= 0 ? LEAST_MS : requests * STEADY_MS;
    return this.#pauseMs;
  }

  afterFailure(): number {
    const pauseMs = this.#failedMs;
    this.#failedMs = Math.min(2 * pauseMs, FAILED_MS.most);
    return pauseMs;
  }
}
