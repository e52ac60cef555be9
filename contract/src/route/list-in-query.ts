// Lists in query strings: the parameter repeated, once for each value.
import { z } from 'zod';

/** At least one value and at most `max`; published as an array. */
export function listInQuery<Item extends z.ZodType<string>>(item: Item, { max }: { max: number }) {
  const list = z.array(item).min(1).max(max);
  // A single value arrives without an array around it.
  return z.preprocess((value) => (typeof value === 'string' ? [value] : value), list);
}
