// Changes that callers wait for.
import { setTimeout as delay } from 'node:timers/promises';

export class ChangeSignal {
  #next = Promise.withResolvers<void>();

  /** Ends the wait of all callers. */
  changed(): void {
    this.#next.resolve();
    this.#next = Promise.withResolvers();
  }

  /**
   * Waits for a change, at most until `untilMs` of the monotonic clock. Resolves with false if that
   * is over or the signal has aborted before the call.
   */
  async hasChanged(untilMs: number, signal: AbortSignal): Promise<boolean> {
    const leftMs = untilMs - performance.now();
    if (leftMs <= 0 || signal.aborted) return false;
    const over = new AbortController();
    const late = delay(leftMs, undefined, { signal: AbortSignal.any([signal, over.signal]) }).catch(() => undefined);
    await Promise.race([this.#next.promise, late]);
    over.abort();
    return true;
  }
}
