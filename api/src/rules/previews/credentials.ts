// Preview credentials in a request: tokens in the query and the preview cookie. Removes them before
// the app sees the request. Pure; makes no access decision.

/** Prefix of every preview token, as distinct from an app's own parameter of the same name. */
export const PREVIEW_TOKEN_PREFIX = 'bpt_';
const PREVIEW_TOKEN_PARAMETER = 'token';

/** Beside a token in a redirect's URL: shows that the visitor was asked to keep a cookie. */
const ASKED_FOR_COOKIE = `${PREVIEW_TOKEN_PREFIX}asked`;

/** A request target without preview tokens, and the first token. */
interface TakenToken {
  token: string | null;
  /** Unchanged byte for byte, except for removed tokens. */
  target: string;
  /** The target is one of {@link askingForCookie}. */
  asked: boolean;
}

/** Removes preview tokens from a request target (`/path?query`). */
export function takeToken(target: string): TakenToken {
  const begin = target.indexOf('?');
  if (begin === -1 || !target.includes('=', begin)) return { token: null, target, asked: false };
  let token: string | null = null;
  let asked = false;
  const kept = target
    .slice(begin + 1)
    .split('&')
    .filter((pair) => {
      const found = tokenOf(pair);
      if (found === ASKED_FOR_COOKIE) asked = true;
      else token ??= found;
      return found === null;
    });
  if (token === null && !asked) return { token, target, asked };
  const path = target.slice(0, begin);
  return { token, target: kept.length === 0 ? path : `${path}?${kept.join('&')}`, asked };
}

/** The request target with the token as its last parameter, replacing any previous token. */
export function withToken(target: string, token: string): string {
  const bare = takeToken(target).target;
  return `${bare}${bare.includes('?') ? '&' : '?'}${PREVIEW_TOKEN_PARAMETER}=${token}`;
}

/** {@link withToken} for a redirect that sets the cookie: shows whether the visitor keeps it. */
export function askingForCookie(target: string, token: string): string {
  return `${withToken(target, token)}&${PREVIEW_TOKEN_PARAMETER}=${ASKED_FOR_COOKIE}`;
}

/**
 * Name of the cookie that replaces the token after the first request; `__Host-` if previews use
 * https.
 */
export function previewCookieName(previewUrl: string): string {
  return previewUrl.startsWith('https:') ? '__Host-berth_preview' : 'berth_preview';
}

/**
 * Its `Set-Cookie` value. Under https the cookie is partitioned, so that pages of other sites can
 * frame a preview. Browsers reject partitioned cookies under http.
 */
export function setPreviewCookie(previewUrl: string, value: string, secondsLeft: number): string {
  const within = previewUrl.startsWith('https:') ? 'Secure; SameSite=None; Partitioned' : 'SameSite=Lax';
  return (
    `${previewCookieName(previewUrl)}=${value}; Path=/; ` +
    `Max-Age=${Math.max(0, Math.floor(secondsLeft))}; HttpOnly; ${within}`
  );
}

/**
 * A `Cookie` header without the preview cookie, and that cookie's first value. Other cookies are
 * unchanged; undefined if none remains.
 */
export function takeCookie(
  name: string,
  header: string | undefined,
): { value: string | null; header: string | undefined } {
  if (header === undefined || !header.includes(name)) return { value: null, header };
  let value: string | null = null;
  const kept = header.split(';').filter((pair) => {
    const equals = pair.indexOf('=');
    if (pair.slice(0, equals === -1 ? pair.length : equals).trim() !== name) return true;
    if (equals !== -1) value ??= pair.slice(equals + 1).trim();
    return false;
  });
  const rest = kept.join(';').trim();
  return { value, header: rest === '' ? undefined : rest };
}

/** The token in a query pair, decoded; null for any other pair. */
function tokenOf(pair: string): string | null {
  const equals = pair.indexOf('=');
  if (equals === -1 || decoded(pair.slice(0, equals)) !== PREVIEW_TOKEN_PARAMETER) return null;
  const value = decoded(pair.slice(equals + 1));
  return value?.startsWith(PREVIEW_TOKEN_PREFIX) === true ? value : null;
}

function decoded(text: string): string | null {
  if (!text.includes('%')) return text;
  try {
    return decodeURIComponent(text);
  } catch {
    // Invalid percent-encoding: not a token of ours.
    return null;
  }
}
