// The way of a visitor of a team link by the service's sign-in page and back: which page that is,
// and to which path of the preview it leads back. Pure.

/** Path of the service's page. */
export const PREVIEW_PAGE = '/preview';
/**
 * Longest path of the service that sign-in leads back to (sign-in/local-path.ts), and that a form
 * sends.
 */
const LONGEST_RETURN = 2_048;
const NO_PATH = '/';

/**
 * The page's address with the path to come back to; without it where that is none, or too long to
 * be kept through a sign-in.
 */
export function withPreviewPath(signIn: string, path: string): string {
  const kept = previewPath(path);
  if (kept === NO_PATH) return signIn;
  const whole = `${signIn}&path=${encodeURIComponent(kept)}`;
  return whole.length - new URL(signIn).origin.length > LONGEST_RETURN ? signIn : whole;
}

/**
 * A path of a preview with its query, byte for byte; `/` for whatever else. It stands right after
 * an origin, so no beginning of it can lead to another one; what would make a fragment, break a
 * header or is read by browsers as another character is none.
 */
export function previewPath(text: string): string {
  // Printable ASCII but "#" and the backslash.
  return /^\/(?!\/)[!"$-[\]-~]*$/.test(text) ? text : NO_PATH;
}
