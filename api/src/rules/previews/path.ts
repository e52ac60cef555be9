// The detour of a team link's visitor through the sign-in page: its address, and the preview path
// to return to. Pure.

/** Path of the sign-in page for previews. */
export const PREVIEW_PAGE = '/preview';
/** Longest return path that sign-in accepts (sign-in/local-path.ts) and forms submit. */
const LONGEST_RETURN = 2_048;
const NO_PATH = '/';

/** The page's address with the return path, omitted if invalid or too long to survive a sign-in. */
export function withPreviewPath(signIn: string, path: string): string {
  const kept = previewPath(path);
  if (kept === NO_PATH) return signIn;
  const whole = `${signIn}&path=${encodeURIComponent(kept)}`;
  return whole.length - new URL(signIn).origin.length > LONGEST_RETURN ? signIn : whole;
}

/**
 * A preview path with its query, unchanged; `/` if invalid. The path follows an origin directly, so
 * it must not change the origin. Invalid characters: `#`, those that break a header, and those that
 * browsers normalise.
 */
export function previewPath(text: string): string {
  // Printable ASCII except `#` and the backslash.
  return /^\/(?!\/)[!"$-[\]-~]*$/.test(text) ? text : NO_PATH;
}
