// The machine's clock and random numbers, set by what the host sends: a restored machine wakes in
// the past, with numbers that it may have had before.
import type { KernelCalls } from './kernel-calls.ts';

/** How far the clock may be off after it was set. */
const TOLERANCE_MS = 2_000;

export class ClockStep {
  /** What the clock should say now. */
  readonly now: () => number;
  readonly #entropy: string;

  /**
   * `clockUnixMs` was the host's time when the request was received, at `receivedAt` of
   * `performance.now()`.
   */
  constructor({ clockUnixMs, entropy }: { clockUnixMs: number; entropy: string }, receivedAt: number) {
    this.now = () => clockUnixMs + performance.now() - receivedAt;
    this.#entropy = entropy;
  }

  async apply(kernel: KernelCalls): Promise<void> {
    await kernel.setClockAndReseed(this.now, Buffer.from(this.#entropy, 'base64'));
  }

  /** The time as the machine has it. Throws when that is not what was set. */
  readBack(): number {
    const clockUnixMs = Date.now();
    const offMs = clockUnixMs - this.now();
    if (Math.abs(offMs) > TOLERANCE_MS) throw new Error(`the clock is ${Math.round(offMs)} ms off`);

    return clockUnixMs;
  }
}
