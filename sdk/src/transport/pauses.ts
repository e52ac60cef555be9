// Pauses between the requests of a follower, and failures that it survives.
import { BerthError } from './errors.ts';
import { delay } from './time.ts';

const FIRST_MS = 100;
/** Longest pauses after news and without. They limit the requests of a flood of news. */
const LONGEST_MS = { news: 1_000, none: 5_000 };
const SLOWER_BY = 1.5;
/** A response that took longer was held. */
const HELD_MS = 1_000;
/** Mean pauses between parts of an output, and time whose parts follow each other at once. */
const PARTS_MS = { whole: 125, small: 250, atOnce: 10_000 };
/** Outage of the service that a follower survives. */
const OUTAGE_MS = 120_000;

/** None while responses are held, growing ones otherwise. */
export class Pauses {
  readonly #signal: AbortSignal;
  readonly #onRetry: ((error: BerthError) => void) | undefined;
  #pauseMs = FIRST_MS;
  #failingSinceMs: number | undefined;
  /** When the next part is due at the mean pause. */
  #dueMs = 0;

  /** @param onRetry called before each repetition of a failed request */
  constructor(signal: AbortSignal, onRetry: ((error: BerthError) => void) | undefined) {
    this.#signal = signal;
    this.#onRetry = onRetry;
  }

  /** Pauses after a response. */
  async after(isNews: boolean, tookMs: number): Promise<void> {
    this.succeeded();
    if (tookMs > HELD_MS) this.#pauseMs = FIRST_MS;
    else await this.pause(isNews ? LONGEST_MS.news : LONGEST_MS.none);
  }

  /**
   * Pauses after a part of an output: not after the first ones, such as those of a dialog. Keeps a
   * steady output within the requests of a credential. @param isWhole more follows at once
   */
  async afterPart(isWhole: boolean): Promise<void> {
    this.succeeded();
    this.#pauseMs = FIRST_MS;
    const nowMs = Date.now();
    this.#dueMs = Math.max(this.#dueMs, nowMs - PARTS_MS.atOnce) + (isWhole ? PARTS_MS.whole : PARTS_MS.small);
    if (this.#dueMs > nowMs) await delay(this.#dueMs - nowMs, this.#signal);
  }

  succeeded(): void {
    this.#failingSinceMs = undefined;
  }

  /**
   * Pauses after a failure that passes. Throws others, and passing ones after two minutes of them.
   * `isActive`: what is followed is: its sandbox may have gone to sleep.
   */
  async afterFailure(error: unknown, { isActive }: { isActive: boolean }): Promise<void> {
    const passes =
      error instanceof BerthError &&
      (error.retryable || error.code === 'timeout' || (isActive && error.code === 'sandbox_state_conflict'));
    this.#failingSinceMs ??= Date.now();
    if (!passes || this.#signal.aborted || Date.now() - this.#failingSinceMs > OUTAGE_MS) throw error;
    await this.retry(error);
  }

  async retry(error: BerthError): Promise<void> {
    this.#onRetry?.(error);
    await delay(Math.max(this.#pauseMs, (error.retryAfter ?? 0) * 1_000), this.#signal);
    this.#slow();
  }

  async pause(longestMs: number = LONGEST_MS.none): Promise<void> {
    await delay(Math.min(this.#pauseMs, longestMs), this.#signal);
    this.#slow();
  }

  #slow(): void {
    this.#pauseMs = Math.min(LONGEST_MS.none, this.#pauseMs * SLOWER_BY);
  }
}
