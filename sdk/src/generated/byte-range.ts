// Written by npm run sdk:generate from contract/. Do not edit.
// Range requests of one part (RFC 9110, section 14). Imports nothing: the SDK has a copy.

/** Values of the headers `Range` and `If-Range`. */
export interface RangeRequest {
  range: string | undefined;
  ifRange: string | undefined;
}

/** A part of a file, in bytes. `partial`: the response is 206. */
interface FilePart {
  first: number;
  length: number;
  partial: boolean;
}

/**
 * The part to send; null if the range lies behind the end. Everything but one range of bytes is
 * ignored, and so is a range of another version of the file than `ifRange`, and of an empty file.
 */
export function partOf({ range, ifRange }: RangeRequest, size: number, etag: string): FilePart | null {
  const whole = { first: 0, length: size, partial: false };
  const [, from, to = '', last] = /^bytes=\s*(?:(\d+)-(\d*)|-(\d+))\s*$/i.exec(range ?? '') ?? [];
  if ((from === undefined && last === undefined) || size === 0) return whole;
  if (ifRange !== undefined && ifRange !== etag) return whole;
  if (from === undefined) {
    const length = Math.min(size, Number(last));
    return length === 0 ? null : { first: size - length, length, partial: true };
  }
  const first = Number(from);
  if (to !== '' && Number(to) < first) return whole;
  if (first >= size) return null;
  const length = (to === '' ? size : Math.min(size, Number(to) + 1)) - first;
  return { first, length, partial: true };
}
