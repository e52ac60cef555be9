// Preferences of a call (RFC 7240). Unknown and invalid ones are ignored.
import { PREFERRED_WAIT_SECONDS } from '@berth/contract/route/limits.ts';

/** True if a `Prefer` header requests a response before the transition is done. */
export function prefersAsync(given: readonly string[]): boolean {
  return preferencesOf(given).includes('respond-async');
}

/** Seconds that the caller waits, from the first `wait=N`; at most the maximum. */
export function preferredWaitSeconds(
  given: readonly string[],
  { min, max }: { min: number; max: number } = PREFERRED_WAIT_SECONDS,
): number | undefined {
  const waits = preferencesOf(given).flatMap((preference) => /^wait\s*=\s*(\d{1,6})$/.exec(preference)?.[1] ?? []);
  const seconds = Number(waits[0] ?? 0);
  return seconds < min ? undefined : Math.min(seconds, max);
}

function preferencesOf(given: readonly string[]): string[] {
  return given
    .flatMap((text) => text.split(','))
    .map((preference) => preference.split(';', 1)[0]?.trim().toLowerCase() ?? '');
}
