// Preferences of a call (RFC 7240). Unknown and invalid ones are ignored.
import { PREFERRED_WAIT_SECONDS } from '@berth/contract/route/limits.ts';

/** True if a `Prefer` header requests a response before the transition is done. */
export function prefersAsync(given: readonly string[]): boolean {
  return preferencesOf(given).includes('respond-async');
}

/** Seconds that the caller waits for a status, from `wait=N`; at most the maximum. */
export function preferredWaitSeconds(
  given: readonly string[],
  { min, max }: { min: number; max: number } = PREFERRED_WAIT_SECONDS,
): number | undefined {
  for (const preference of preferencesOf(given)) {
    const seconds = Number(/^wait\s*=\s*(\d{1,6})$/.exec(preference)?.[1]);
    if (seconds >= min) return Math.min(seconds, max);
  }
  return undefined;
}

function preferencesOf(given: readonly string[]): string[] {
  return given
    .flatMap((text) => text.split(','))
    .map((preference) => preference.split(';', 1)[0]?.trim().toLowerCase() ?? '');
}
