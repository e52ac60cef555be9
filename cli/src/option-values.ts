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

/** A whole number within bounds, or `none`. (The parser of the words takes null for nothing given.) */
export function wholeNumberOrNone(least: number, most: number): (typed: string) => number | 'none' {
  const number = wholeNumber(least, most);
  return (typed) => {
    if (typed === 'none') return typed;
    if (/^\d+$/.test(typed)) return number(typed);
    throw new InvalidArgumentError(`It must be a whole number from ${least} to ${most}, or none.`);
  };
}

/** An amount of machine hours, or `none`. */
export function machineHours(typed: string): number | 'none' {
  if (typed === 'none') return typed;
  if (/^\d{1,9}(?:\.\d{1,6})?$/.test(typed)) return Number(typed);
  throw new InvalidArgumentError('It must be a number of hours, as 100 or 2.5, or none.');
}

/** One more of an option that can be there many times; `a,b` is two. */
export function each(typed: string, before: unknown): string[] {
  const words = typed.split(',').map((word) => word.trim());
  if (words.includes('')) throw new InvalidArgumentError('It is empty.');
  return [...((before as string[] | undefined) ?? []), ...words];
}

/** `key=value`, one more of them. */
export function keyValue(typed: string, before: unknown): Record<string, string> {
  const equals = typed.indexOf('=');
  if (equals < 1) throw new InvalidArgumentError('It must be key=value.');
  // As an own property, whatever the key is called.
  return Object.fromEntries([
    ...Object.entries((before as Record<string, string> | undefined) ?? {}),
    [typed.slice(0, equals), typed.slice(equals + 1)],
  ]);
}
