// Numbers that the API promises (spec: Limits), and the bounds on text it takes. docs/limits.md names the test of each.

/** Bounds of an exec. `outputBytes` holds for each of stdout and stderr; the tail is kept. */
export const EXEC_LIMITS = {
  timeoutSeconds: { default: 120, min: 1, max: 600 },
  outputBytes: 65_536,
  commandCharacters: 1_048_576,
} as const;

export const METADATA_LIMITS = { keys: 24, keyCharacters: 128, valueCharacters: 1_024 } as const;

export const NAME_CHARACTERS = 100;
export const END_USER_ID_CHARACTERS = 512;

/** Longest body taken by a route that does not set its own. */
export const DEFAULT_BODY_BYTES = 256 * 1024;

/** How long create and destroy hold their answer for the transition to end; `Prefer: respond-async` answers at once. */
export const TRANSITION_WAIT_MS = 2_000;

/** After this long an exec without a result gets its headers, and then a space at each interval, so that silent connections live. */
export const EXEC_KEEPALIVE_MS = { headersAfter: 5_000, spaceEvery: 10_000 } as const;
