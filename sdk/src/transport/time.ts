// Delays and deadlines with signals.
import { BerthError } from './errors.ts';

/** Rejects with the signal's reason if aborted. */
export function delay(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal.aborted) {
      reject(signal.reason as Error);
      return;
    }
    const timer = setTimeout(() => {
      signal.removeEventListener('abort', stop);
      resolve();
    }, ms);
    const stop = (): void => {
      clearTimeout(timer);
      reject(signal.reason as Error);
    };
    signal.addEventListener('abort', stop, { once: true });
  });
}

/** Rejects with the signal's reason if it aborts first; the work continues. */
export function unlessAborted<T>(signal: AbortSignal, work: Promise<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    const leave = (): void => reject(signal.reason as Error);
    signal.addEventListener('abort', leave, { once: true });
    work.then(resolve, reject).finally(() => signal.removeEventListener('abort', leave));
  });
}

/** A signal that aborts with the given ones or after a timeout. */
export class Deadline {
  readonly signal: AbortSignal;
  readonly #controller = new AbortController();
  readonly #timer: ReturnType<typeof setTimeout>;
  readonly #endsAtMs: number;
  readonly #watched: readonly AbortSignal[];

  /** @param what name of the work, for the error */
  constructor(timeoutMs: number, what: string, signals: readonly (AbortSignal | null | undefined)[]) {
    this.signal = this.#controller.signal;
    this.#endsAtMs = Date.now() + timeoutMs;
    this.#timer = setTimeout(() => {
      this.#controller.abort(new BerthError(`${what} took longer than ${timeoutMs} ms`, { code: 'timeout' }));
    }, timeoutMs);
    this.#watched = signals.filter((signal) => signal != null);
    for (const signal of this.#watched) {
      if (signal.aborted) this.#controller.abort(signal.reason);
      else signal.addEventListener('abort', this.#follow, { once: true });
    }
  }

  /** Remaining milliseconds. */
  get leftMs(): number {
    return this.#endsAtMs - Date.now();
  }

  /** Releases the timer and listeners; must always be called. */
  end(): void {
    clearTimeout(this.#timer);
    for (const signal of this.#watched) signal.removeEventListener('abort', this.#follow);
  }

  readonly #follow = (event: Event): void => this.#controller.abort((event.target as AbortSignal).reason);
}

const FIRST_PAUSE_MS = 100;
const LONGEST_PAUSE_MS = 2_000;
const SLOWER_BY = 1.5;

/** Pauses between polls: 100 ms, then longer, at most 2 s. */
export class Backoff {
  #pauseMs = FIRST_PAUSE_MS;

  /** @param retryAfter seconds that the service asks for: the pause is no shorter */
  async pause(retryAfter: number | undefined, signal: AbortSignal): Promise<void> {
    await delay(Math.max(this.#pauseMs, (retryAfter ?? 0) * 1_000), signal);
    this.#pauseMs = Math.min(LONGEST_PAUSE_MS, this.#pauseMs * SLOWER_BY);
  }
}
