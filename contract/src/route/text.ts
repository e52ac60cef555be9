// Text fields. NUL and lone surrogates, which Postgres and UTF-8 cannot store, are rejected rather
// than altered.
import { z } from 'zod';

const STORABLE = /^[^\0\p{Cs}]*$/u;

/** A storable string of `min` to `max` UTF-16 code units. */
export function text(min: number, max: number) {
  return z.string().min(min).max(max).regex(STORABLE, 'must not contain NUL characters or lone surrogates');
}

/** ISO 8601 in UTC with milliseconds, e.g. `2026-01-31T08:15:30.250Z`. */
export const timestamp = z
  .string()
  .regex(/^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{3}Z$/)
  .meta({ format: 'date-time' });

/** An id in a path or field. Ids are opaque: a malformed id is not found, not invalid. */
export const idText = z.string().min(1).max(200);

/**
 * A path parameter that the access check does not look up. Its length is limited only by the size
 * of the request head; an unknown value is not found.
 */
export const nameInPath = z.string().min(1);
