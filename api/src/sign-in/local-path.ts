// Validates redirect targets after sign-in: paths of this service only. Otherwise sign-in would be
// an open redirect.

const LONGEST_PATH = 2_048;
/** Any origin works: it only shows whether a browser would leave it. */
const ORIGIN = 'http://local.invalid';

/** The path with query as a browser would parse it; null if it leads outside this service. */
export function localPath(text: unknown): string | null {
  if (typeof text !== 'string' || text.length > LONGEST_PATH) return null;
  // Browsers treat "//" and "/\" as the start of a host, and drop tabs and line breaks before
  // parsing.
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
  // "/x/..//evil" resolves to "//evil".
  return path.startsWith('//') ? null : path;
}
