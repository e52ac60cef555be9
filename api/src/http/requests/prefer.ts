// The header Prefer (RFC 7240), of which `respond-async` is honoured.

/** Whether the caller wants its answer at once rather than when the transition is done. */
export function prefersAsync(header: string | string[] | undefined): boolean {
  const text = Array.isArray(header) ? header.join(',') : (header ?? '');
  return text.split(',').some((preference) => preference.split(';', 1)[0]?.trim().toLowerCase() === 'respond-async');
}
