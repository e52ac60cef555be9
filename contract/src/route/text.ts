// Text fields. NUL and lone surrogates, which Postgres and UTF-8 cannot store, are rejected rather
// than altered.
import { z } from 'zod';
import { IDEMPOTENCY_KEY } from './limits.ts';

/** Control characters, as the inside of a character class. */
export const CONTROL = String.raw`\x00-\x1f\x7f-\x9f`;

/** A storable string of `min` to `max` UTF-16 code units. */
export function text(min: number, max: number) {
  return textWithout(String.raw`\x00`, min, max, 'must not contain NUL characters or lone surrogates');
}

/**
 * A string without the given characters, the inside of a character class, and lone surrogates. The
 * published pattern omits the surrogates, which Go and Python cannot express: UTF-8 has none.
 */
export function textWithout(characters: string, min: number, max: number, message: string) {
  return z
    .string()
    .min(min)
    .max(max)
    .regex(new RegExp(`^[^${characters}\\p{Cs}]*$`, 'u'), message)
    .meta({ pattern: `^[^${characters}]*$` });
}

/** ISO 8601 in UTC with milliseconds, e.g. `2026-01-31T08:15:30.250Z`. */
export const timestamp = z
  .string()
  .regex(/^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{3}Z$/)
  .meta({ format: 'date-time' });

/** Key of a create. HTTP headers and arguments of tools are limited to printable ASCII. */
export const idempotencyKey = z
  .string()
  .min(1)
  .max(IDEMPOTENCY_KEY.maxCharacters)
  .regex(/^[\x20-\x7e]+$/, 'must be printable ASCII characters');

/** An id in a path or field. Ids are opaque: a malformed id is not found, not invalid. */
export const idText = z.string().min(1).max(200);

/**
 * A path parameter that the access check does not look up. Its length is limited only by the size
 * of the request head; an unknown value is not found.
 */
export const nameInPath = z.string().min(1);
