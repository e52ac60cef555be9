// Sets the guest's clock and random numbers from the host's values: a restored guest has an old
// clock, and random state that other guests share.
import type { KernelCalls } from './kernel-calls.ts';

/** Tolerated clock error after setting. */
const TOLERANCE_MS = 2_000;

export class ClockStep {
  /** Time that the clock should show. */
  readonly now: () => number;
  readonly #entropy: string;

  /**
   * `clockUnixMs`: the host's time at the request's arrival, `receivedAt` (`performance.now()`).
   */
  constructor({ clockUnixMs, entropy }: { clockUnixMs: number; entropy: string }, receivedAt: number) {
    this.now = () => clockUnixMs + performance.now() - receivedAt;
    this.#entropy = entropy;
  }

  async apply(kernel: KernelCalls): Promise<void> {
    await kernel.setClockAndReseed(this.now, Buffer.from(this.#entropy, 'base64'));
  }

  /** Returns the guest's clock. Throws when it differs from the time set. */
  readBack(): number {
    const clockUnixMs = Date.now();
    const offMs = clockUnixMs - this.now();
    if (Math.abs(offMs) > TOLERANCE_MS) throw new Error(`the clock is ${Math.round(offMs)} ms off`);

    return clockUnixMs;
  }
}
