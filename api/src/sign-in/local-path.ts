// Where a person may be sent after signing in: a path of this service and nothing else, or sign-in
// would vouch for other sites.

const LONGEST_PATH = 2_048;
/** Any origin would do: it only shows whether a browser would leave it. */
const ORIGIN = 'http://local.invalid';

/**
 * The path as a browser would read it, with its query; null when it leads anywhere but to a path of
 * this service.
 */
export function localPath(text: unknown): string | null {
  if (typeof text !== 'string' || text.length > LONGEST_PATH) return null;
  // Browsers take "//" and "/\" for the beginning of a host, and drop tabs and line breaks before
  // they look.
  // oxlint-disable-next-line no-control-regex -- these are the characters that are meant
  if (!/^\/(?![/\\])[^\u0000-\u0020\u007f\\]*$/.test(text)) return null;
  let url: URL;
  try {
    url = new URL(text, ORIGIN);
  } catch {
    return null;
  }
  if (url.origin !== ORIGIN) return null;
  const path = url.pathname + url.search + url.hash;
  // "/x/..//evil" becomes "//evil" once its dots are resolved.
  return path.startsWith('//') ? null : path;
}
