// Cookies of apps, proven to be their own. A page can set cookies for its parent domain
// (`Domain=`), which the browser sends to every sibling like the sibling's own, without a mark.
// Only the name prefix `__Host-` excludes this. Over https each cookie of an app is therefore
// stored as `__Host-berth.<name>`, and only such cookies reach the app. Pure.
//
// A readable cookie (not `HttpOnly`) is stored a second time under its own name for the app's
// scripts, and reaches the app while both copies have the same value.

const HOST_PREFIX = '__Host-';
const PROOF_PREFIX = `${HOST_PREFIX}berth.`;
/** First characters of a proof's value. */
const HIDDEN = 'h.';
const READABLE = 'r.';

/** The `Set-Cookie` values that replace one of an app; it has no `Domain`. */
export function proveCookie(cookie: string): string[] {
  const [pair = '', ...attributes] = cookie.split(';');
  const equals = pair.indexOf('=');
  const name = pair.slice(0, Math.max(0, equals)).trim();
  if (name.startsWith(HOST_PREFIX)) return [cookie];
  // Indistinguishable from another cookie in a request.
  if (name === '') return [];
  const kept = attributes.filter((attribute) => !/^\s*(path|secure|httponly)\s*(=|$)/i.test(attribute));
  const isHidden = attributes.some((attribute) => /^\s*httponly\s*(=|$)/i.test(attribute));
  const value = (isHidden ? HIDDEN : READABLE) + pair.slice(equals + 1).trim();
  // The prefix requires the path `/`.
  const proof = [`${PROOF_PREFIX}${name}=${value}`, ...kept, ' Path=/', ' Secure', ' HttpOnly'].join(';');
  return isHidden ? [proof] : [proof, cookie];
}

/** The proven cookies of a `Cookie` header, under their own names; undefined if there are none. */
export function provenCookies(header: string): string | undefined {
  const sent = header.split(';').map((pair) => pair.trim());
  const all = new Set(sent);
  const proven = sent.filter((pair) => pair.startsWith(HOST_PREFIX)).flatMap((pair) => provenBy(pair, all) ?? []);
  return proven.length === 0 ? undefined : proven.join('; ');
}

function provenBy(pair: string, all: ReadonlySet<string>): string | null {
  if (!pair.startsWith(PROOF_PREFIX)) return pair;
  const equals = pair.indexOf('=');
  if (equals === -1) return null;
  const value = pair.slice(equals + 1);
  const cookie = `${pair.slice(PROOF_PREFIX.length, equals)}=${value.slice(HIDDEN.length)}`;
  return value.startsWith(HIDDEN) || (value.startsWith(READABLE) && all.has(cookie)) ? cookie : null;
}
