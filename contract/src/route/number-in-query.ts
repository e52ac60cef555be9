// Whole numbers in a query: they arrive as digits, and the published document shows them as the
// numbers that they stand for.
import { z } from 'zod';

export interface NumberInQuery {
  min: number;
  max: number;
  description: string;
}

/** From `min` to `max`; anything else is refused with a message that says so. */
export function numberInQuery({ min, max, description }: NumberInQuery) {
  const message = `must be an integer from ${min} to ${max}`;
  return z
    .string()
    .regex(new RegExp(`^\\d{1,${String(max).length}}$`), message)
    .transform(Number)
    .refine((value) => value >= min && value <= max, message)
    .meta(shownAsInteger({ minimum: min, maximum: max, description }));
}

/** What the document says instead of the text's own schema. */
export function shownAsInteger(words: {
  description: string;
  minimum?: number;
  maximum?: number;
}): Record<string, unknown> {
  return { type: 'integer', pattern: undefined, ...words };
}
