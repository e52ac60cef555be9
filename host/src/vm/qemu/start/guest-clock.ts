// Whether a guest's clock runs at the right rate. A kernel measures its time stamp counter as it
// boots; under emulation on a busy machine it may take it for slower than it is, and its clock
// would run fast for as long as it lives. Pure.
import { DriverError } from '../../driver.ts';

/**
 * How far the rate may be off. The kernel corrects what is within a hundredth by itself, some
 * seconds after the boot.
 */
const RATE_TOLERANCE = 0.005;

/**
 * The guest's uptime as it was at some moment between sending and answer, both of
 * `performance.now()`.
 */
export interface ClockReading {
  sentMs: number;
  answeredMs: number;
  uptimeMs: number;
}

/**
 * A machine whose clock runs at another rate than ours: made again, it may have measured better.
 */
export class ClockFault extends DriverError {
  override readonly name = 'ClockFault';
}

/**
 * What is wrong with the rate between two readings, as far as they can tell; null when nothing is.
 */
export function clockFault(first: ClockReading, second: ClockReading): string | null {
  const passedMs = second.uptimeMs - first.uptimeMs;
  const atLeastMs = second.sentMs - first.answeredMs;
  const atMostMs = second.answeredMs - first.sentMs;
  if (passedMs >= atLeastMs * (1 - RATE_TOLERANCE) && passedMs <= atMostMs * (1 + RATE_TOLERANCE)) return null;

  return `the guest's clock does not keep time: ${Math.round(passedMs)} ms passed in it, ${Math.round(atLeastMs)} to ${Math.round(atMostMs)} ms outside`;
}

/**
 * The rate of the time stamp counter that the kernel settled on, from its messages; null when they
 * do not say.
 */
export function tscKhzIn(messages: string): number | null {
  const refined = /tsc: Refined TSC clocksource calibration: (\d+)\.(\d{3}) MHz/.exec(messages);
  return refined === null ? null : Number(refined[1]) * 1_000 + Number(refined[2]);
}
