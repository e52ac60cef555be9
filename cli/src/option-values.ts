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
