// Billing periods: months counted from an anchor, in UTC. Pure.
// Periods tile all of time: each ends in the millisecond in which the next begins. All are counted
// from the anchor, never from the previous period. A period that starts on February 28 for lack of
// a 31st is therefore followed by periods that start on the 31st.

/** Half-open interval: `endsAt` equals the next `startsAt`. */
export interface BillingPeriod {
  startsAt: Date;
  endsAt: Date;
}

/** The period that contains the instant, which may precede the anchor. */
export function periodAt(anchor: Date, at: Date): BillingPeriod {
  const months = (at.getUTCFullYear() - anchor.getUTCFullYear()) * 12 + at.getUTCMonth() - anchor.getUTCMonth();
  // The period began in the month of `at` or in the month before.
  const first = startOf(anchor, months) <= at ? months : months - 1;
  return { startsAt: startOf(anchor, first), endsAt: startOf(anchor, first + 1) };
}

/**
 * Start of the period `months` after the anchor's: on the anchor's day of the month, or on the last
 * day of a shorter month.
 */
function startOf(anchor: Date, months: number): Date {
  const year = anchor.getUTCFullYear();
  const month = anchor.getUTCMonth() + months;
  const start = new Date(anchor);
  start.setUTCFullYear(year, month, Math.min(anchor.getUTCDate(), daysIn(year, month)));
  return start;
}

function daysIn(year: number, month: number): number {
  // Date.UTC would map the years 0 to 99 to the 1900s.
  const last = new Date(0);
  last.setUTCFullYear(year, month + 1, 0);
  return last.getUTCDate();
}
