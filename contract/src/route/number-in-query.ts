// Integers in query strings: parsed from digits, published as integers.
import { z } from 'zod';

interface NumberInQuery {
  min: number;
  max: number;
  description: string;
}

/** An integer from `min` to `max`. */
export function numberInQuery({ min, max, description }: NumberInQuery) {
  const message = `must be an integer from ${min} to ${max}`;
  return z
    .string()
    .regex(new RegExp(`^\\d{1,${String(max).length}}$`), message)
    .transform(Number)
    .refine((value) => value >= min && value <= max, message)
    .meta(shownAsInteger({ minimum: min, maximum: max, description }));
}

/** OpenAPI metadata that replaces the schema of the string. */
export function shownAsInteger(words: {
  description: string;
  minimum?: number;
  maximum?: number;
}): Record<string, unknown> {
  return { type: 'integer', pattern: undefined, ...words };
}
