// Parsers of option values. Errors name the allowed values; commander adds the option.
import { InvalidArgumentError } from 'commander';

/** Bounds are inclusive. */
export function wholeNumber(least: number, most: number): (typed: string) => number {
  return (typed) => {
    if (/^\d{1,15}$/.test(typed) && Number(typed) >= least && Number(typed) <= most) return Number(typed);
    throw new InvalidArgumentError(`It must be a whole number from ${least} to ${most}.`);
  };
}

export const port = wholeNumber(1, 65_535);

/** Bounds in characters, inclusive. */
export function textOf(least: number, most: number): (typed: string) => string {
  return (typed) => {
    if (typed.length >= least && typed.length <= most) return typed;
    throw new InvalidArgumentError(`It must have ${least} to ${most} characters, not ${typed.length}.`);
  };
}

const UNIT_SECONDS: Readonly<Record<string, number>> = { s: 1, m: 60, min: 60, h: 3_600, d: 86_400, w: 604_800 };

/**
 * Seconds, as a number or with units: `90`, `45m`, `2h`, `1h30m`, `7d`. Bounds in seconds,
 * inclusive.
 */
export function durationSeconds(least: number, most: number): (typed: string) => number {
  return (typed) => {
    const seconds = secondsOf(typed);
    if (seconds !== null && seconds >= least && seconds <= most) return seconds;
    throw new InvalidArgumentError(
      `It must be a number of seconds or a duration such as ${examples(least, most)}, ` +
        `from ${least} s to ${most} s (${inWords(most)}).`,
    );
  };
}

/** Durations within the bounds, for a message. */
function examples(least: number, most: number): string {
  const fitting = ['45m', '2h', '7d'].filter((text) => {
    const seconds = secondsOf(text) ?? 0;
    return seconds >= least && seconds <= most;
  });
  return fitting.length === 0 ? `${least}s` : fitting.join(', ').replace(/, (?=[^,]*$)/, ' or ');
}

function secondsOf(typed: string): number | null {
  if (/^\d{1,12}$/.test(typed)) return Number(typed);
  if (!/^(?:\d{1,9}(?:min|[smhdw]))+$/.test(typed)) return null;
  let seconds = 0;
  for (const [, count, unit = ''] of typed.matchAll(/(\d+)(min|[smhdw])/g))
    seconds += Number(count) * (UNIT_SECONDS[unit] ?? 0);
  return seconds;
}

function inWords(seconds: number): string {
  return seconds % 86_400 === 0 ? `${seconds / 86_400} d` : `${seconds / 3_600} h`;
}

/** Whole number or `none`; commander treats null as a missing value. */
export function wholeNumberOrNone(least: number, most: number): (typed: string) => number | 'none' {
  const number = wholeNumber(least, most);
  return (typed) => {
    if (typed === 'none') return typed;
    if (/^\d+$/.test(typed)) return number(typed);
    throw new InvalidArgumentError(`It must be a whole number from ${least} to ${most}, or none.`);
  };
}

export function machineHours(typed: string): number | 'none' {
  if (typed === 'none') return typed;
  if (/^\d{1,9}(?:\.\d{1,6})?$/.test(typed)) return Number(typed);
  throw new InvalidArgumentError('It must be a number of hours such as 100 or 2.5, or none.');
}

/** Collects a repeatable option; `a,b` counts as two values. */
export function each(typed: string, before: unknown): string[] {
  const words = typed.split(',').map((word) => word.trim());
  if (words.includes('')) throw new InvalidArgumentError('It must not be empty.');
  return [...((before as string[] | undefined) ?? []), ...words];
}

/** Collects repeated `NAME=VALUE` options, and `NAME` of a variable of this process. */
export function variable(typed: string, before: unknown): Record<string, string> {
  if (typed.includes('=')) return keyValue(typed, before);
  const value = process.env[typed];
  if (value === undefined)
    throw new InvalidArgumentError('It must be NAME=VALUE, or the name of a variable that is set here.');
  return keyValue(`${typed}=${value}`, before);
}

/** Collects repeated `key=value` options. */
export function keyValue(typed: string, before: unknown): Record<string, string> {
  const equals = typed.indexOf('=');
  if (equals < 1) throw new InvalidArgumentError('It must be key=value.');
  // Creates own properties even for `__proto__`.
  return Object.fromEntries([
    ...Object.entries((before as Record<string, string> | undefined) ?? {}),
    [typed.slice(0, equals), typed.slice(equals + 1)],
  ]);
}
