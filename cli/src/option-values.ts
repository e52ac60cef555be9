// Values of options as they are typed, turned into what they mean. Each throws in words that name what is allowed; commander says which option it was.
import { InvalidArgumentError } from 'commander';

/** A whole number within bounds, both included. */
export function wholeNumber(least: number, most: number): (typed: string) => number {
  return (typed) => {
    if (/^\d{1,15}$/.test(typed) && Number(typed) >= least && Number(typed) <= most) return Number(typed);
    throw new InvalidArgumentError(`It must be a whole number from ${least} to ${most}.`);
  };
}

/** A TCP port. */
export const port = wholeNumber(1, 65_535);

/** A text of so many characters, both included. */
export function textOf(least: number, most: number): (typed: string) => string {
  return (typed) => {
    if (typed.length >= least && typed.length <= most) return typed;
    throw new InvalidArgumentError(`It must have ${least} to ${most} characters, not ${typed.length}.`);
  };
}

const UNIT_SECONDS: Readonly<Record<string, number>> = { s: 1, m: 60, min: 60, h: 3_600, d: 86_400, w: 604_800 };

/** Seconds, as a number of them or with units: `90`, `45m`, `2h`, `1h30m`, `7d`. Bounds are in seconds, both included. */
export function durationSeconds(least: number, most: number): (typed: string) => number {
  return (typed) => {
    const seconds = secondsOf(typed);
    if (seconds !== null && seconds >= least && seconds <= most) return seconds;
    throw new InvalidArgumentError(`It must be seconds, or a time as 45m, 2h or 7d, from ${least} s to ${most} s (${inWords(most)}).`);
  };
}

function secondsOf(typed: string): number | null {
  if (/^\d{1,12}$/.test(typed)) return Number(typed);
  if (!/^(?:\d{1,9}(?:min|[smhdw]))+$/.test(typed)) return null;
  let seconds = 0;
  for (const [, count, unit = ''] of typed.matchAll(/(\d+)(min|[smhdw])/g)) seconds += Number(count) * (UNIT_SECONDS[unit] ?? 0);
  return seconds;
}

function inWords(seconds: number): string {
  return seconds % 86_400 === 0 ? `${seconds / 86_400} d` : `${seconds / 3_600} h`;
}

/** `key=value`, once or more: all of them, in order. A value may have further equals signs, or nothing. */
export function keyValues(limits: { keys: number; keyCharacters: number; valueCharacters: number }) {
  return (typed: string, before: unknown): ReadonlyMap<string, string> => {
    const at = typed.indexOf('=');
    const key = typed.slice(0, at);
    const value = typed.slice(at + 1);
    if (at < 1) throw new InvalidArgumentError('It must be key=value.');
    if (key.length > limits.keyCharacters || value.length > limits.valueCharacters) {
      throw new InvalidArgumentError(`A key has up to ${limits.keyCharacters} characters, a value up to ${limits.valueCharacters}.`);
    }
    const all = new Map(before as ReadonlyMap<string, string> | undefined);
    if (all.has(key)) throw new InvalidArgumentError('This key is there twice.');
    if (all.size >= limits.keys) throw new InvalidArgumentError(`There may be up to ${limits.keys}.`);
    return all.set(key, value);
  };
}

/** Machine hours a billing period, or `none`: null. */
export function hoursOrNone(typed: string): number | null {
  if (typed === 'none') return null;
  if (/^\d{1,9}(?:\.\d{1,6})?$/.test(typed)) return Number(typed);
  throw new InvalidArgumentError("It must be a number of machine hours, 0 or more, or 'none'.");
}
