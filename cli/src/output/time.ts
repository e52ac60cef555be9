// Formats times.

const UNITS = [
  ['d', 86_400],
  ['h', 3_600],
  ['min', 60],
] as const;

/** Elapsed time, rounded down to the largest unit: `3 d ago`. @param at ISO 8601 */
export function since(at: string, nowMs = Date.now()): string {
  const seconds = Math.max(0, Math.round((nowMs - Date.parse(at)) / 1_000));
  return `${duration(seconds)} ago`;
}

/**
 * Remaining time, rounded to the largest unit: `in 3 d`; a past time as in `since`. @param at ISO
 * 8601
 */
export function until(at: string, nowMs = Date.now()): string {
  const seconds = Math.round((Date.parse(at) - nowMs) / 1_000);
  if (seconds < 0) return since(at, nowMs);
  const [unit, length] = UNITS.find(([, least]) => seconds >= least) ?? (['s', 1] as const);
  return `in ${Math.round(seconds / length)} ${unit}`;
}

/** Rounded down to the largest unit: 90 minutes are `1 h`. */
export function duration(seconds: number): string {
  for (const [unit, length] of UNITS) if (seconds >= length) return `${Math.floor(seconds / length)} ${unit}`;

  return `${Math.round(seconds)} s`;
}

/** Drops fractions of a second: `2026-11-22T10:00:00Z`. @param at ISO 8601 in UTC */
export function instant(at: string): string {
  return at.replace(/\.\d+Z$/, 'Z');
}

export function instantSince(at: string, nowMs = Date.now()): string {
  return `${instant(at)} (${since(at, nowMs)})`;
}

export function instantUntil(at: string, nowMs = Date.now()): string {
  return `${instant(at)} (${until(at, nowMs)})`;
}
