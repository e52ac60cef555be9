// Checks the rate of a guest's clock. The kernel calibrates the time stamp counter at boot. Under
// emulation on a busy host it may measure too low a rate; its clock would then run fast until the
// next boot. Pure.
import { DriverError } from '../../driver.ts';

/**
 * Tolerated deviation of the rate. The kernel itself corrects up to one percent, some seconds after
 * the boot.
 */
const RATE_TOLERANCE = 0.005;

/** The guest's uptime at some moment between request and response, both in `performance.now()`. */
export interface ClockReading {
  sentMs: number;
  answeredMs: number;
  uptimeMs: number;
}

/** A VM whose clock runs at a wrong rate; a new boot may calibrate better. */
export class ClockFault extends DriverError {
  override readonly name = 'ClockFault';
}

/** The fault shown by two readings; null if the readings are consistent with a correct rate. */
export function clockFault(first: ClockReading, second: ClockReading): string | null {
  const passedMs = second.uptimeMs - first.uptimeMs;
  const atLeastMs = second.sentMs - first.answeredMs;
  const atMostMs = second.answeredMs - first.sentMs;
  if (passedMs >= atLeastMs * (1 - RATE_TOLERANCE) && passedMs <= atMostMs * (1 + RATE_TOLERANCE)) return null;

  return (
    `the guest's clock does not keep time: ` +
    `${Math.round(passedMs)} ms passed in it, ${Math.round(atLeastMs)} to ${Math.round(atMostMs)} ms outside`
  );
}

/** The time stamp counter's rate that the kernel settled on, from its messages; null if absent. */
export function tscKhzIn(messages: string): number | null {
  const refined = /tsc: Refined TSC clocksource calibration: (\d+)\.(\d{3}) MHz/.exec(messages);
  return refined === null ? null : Number(refined[1]) * 1_000 + Number(refined[2]);
}
