// Billing periods: months counted from an anchor, in UTC. Pure.
//
// The periods of an anchor tile all of time: each ends in the millisecond in which the next begins.
// All are counted from the anchor itself, never from the period before, so that one which begins on
// the 28th of February for want of a 31st is followed by one that begins on the 31st of March.

/** Half open: `endsAt` is the next one's `startsAt`. */
export interface BillingPeriod {
  startsAt: Date;
  endsAt: Date;
}

/** The period in which the instant lies; it may be before the anchor. */
export function periodAt(anchor: Date, at: Date): BillingPeriod {
  const months = (at.getUTCFullYear() - anchor.getUTCFullYear()) * 12 + at.getUTCMonth() - anchor.getUTCMonth();
  // In the month of `at`, its period begins before it or has begun in the month before.
  const first = startOf(anchor, months) <= at ? months : months - 1;
  return { startsAt: startOf(anchor, first), endsAt: startOf(anchor, first + 1) };
}

/**
 * When the period begins that is so many months after the anchor's: on the anchor's day, or the
 * month's last when it has no such day.
 */
function startOf(anchor: Date, months: number): Date {
  const year = anchor.getUTCFullYear();
  const month = anchor.getUTCMonth() + months;
  const start = new Date(anchor);
  start.setUTCFullYear(year, month, Math.min(anchor.getUTCDate(), daysIn(year, month)));
  return start;
}

function daysIn(year: number, month: number): number {
  // Not Date.UTC, which takes the years 0 to 99 for the 1900s.
  const last = new Date(0);
  last.setUTCFullYear(year, month + 1, 0);
  return last.getUTCDate();
}
