// The preference `respond-async` of a call (RFC 7240), the only one that is honoured.

/** Whether the values of the header `Prefer` ask for a response before the transition is done. */
export function prefersAsync(given: readonly string[]): boolean {
  return given
    .flatMap((text) => text.split(','))
    .some((preference) => preference.split(';', 1)[0]?.trim().toLowerCase() === 'respond-async');
}
