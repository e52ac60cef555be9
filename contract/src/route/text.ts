// Text that can be stored: what Postgres and UTF-8 cannot hold (NUL, lone surrogates) is refused
// rather than altered.
import { z } from 'zod';

const STORABLE = /^[^\0\p{Cs}]*$/u;

/** A string of `min` to `max` UTF-16 code units that survives storage unchanged. */
export function text(min: number, max: number) {
  return z.string().min(min).max(max).regex(STORABLE, 'must not contain NUL characters or lone surrogates');
}

/** ISO 8601 in UTC with milliseconds, e.g. `2026-01-31T08:15:30.250Z`. */
export const timestamp = z
  .string()
  .regex(/^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{3}Z$/)
  .meta({ format: 'date-time' });

/** An id in a path or a field. Ids are opaque: one that cannot exist is simply not found. */
export const idText = z.string().min(1).max(200);

/**
 * What names something in a path where access does not look it up first: of any length (a request's
 * head is bounded), to be not found.
 */
export const nameInPath = z.string().min(1);
