// The preference `respond-async` of a call (RFC 7240). Others are ignored.

/** True if a `Prefer` header requests a response before the transition is done. */
export function prefersAsync(given: readonly string[]): boolean {
  return given
    .flatMap((text) => text.split(','))
    .some((preference) => preference.split(';', 1)[0]?.trim().toLowerCase() === 'respond-async');
}
