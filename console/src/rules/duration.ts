// Durations in the largest whole unit, for texts such as `3 min ago`.
export interface Duration {
  count: number;
  unit: 'second' | 'minute' | 'hour' | 'day' | 'month' | 'year';
}

const UNITS: readonly (readonly [Duration['unit'], number])[] = [
  ['year', 31_536_000],
  ['month', 2_592_000],
  ['day', 86_400],
  ['hour', 3_600],
  ['minute', 60],
  ['second', 1],
];

/** Whole units between the times; negative if `then` is later than `now`. */
export function durationBetween(then: number, now: number): Duration {
  const seconds = (now - then) / 1_000;
  const [unit, length] = UNITS.find(([, size]) => Math.abs(seconds) >= size) ?? (['second', 1] as const);
  return { count: Math.trunc(seconds / length), unit };
}
