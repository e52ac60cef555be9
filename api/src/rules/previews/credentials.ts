// What a request to a preview brings of ours, and how it is taken out before the app sees the
// request: tokens in the query, our cookie. Pure; texts only, nothing is judged here.

/**
 * What every token of a preview's URL begins with; an app's own parameter of the same name does
 * not.
 */
export const PREVIEW_TOKEN_PREFIX = 'bpt_';
export const PREVIEW_TOKEN_PARAMETER = 'token';

/** A request target without our tokens, and the first of them. */
export interface TakenToken {
  token: string | null;
  /** Byte for byte what it was, but for our tokens. */
  target: string;
}

/** Takes our tokens out of a request target (`/path?query`). */
export function takeToken(target: string): TakenToken {
  const begin = target.indexOf('?');
  if (begin === -1 || !target.includes('=', begin)) return { token: null, target };
  let token: string | null = null;
  const kept = target
    .slice(begin + 1)
    .split('&')
    .filter((pair) => {
      const found = tokenOf(pair);
      token ??= found;
      return found === null;
    });
  if (token === null) return { token, target };
  const path = target.slice(0, begin);
  return { token, target: kept.length === 0 ? path : `${path}?${kept.join('&')}` };
}

/**
 * A request target with the token as the last of its parameters; what it had of ours is taken out.
 */
export function withToken(target: string, token: string): string {
  const bare = takeToken(target).target;
  return `${bare}${bare.includes('?') ? '&' : '?'}${PREVIEW_TOKEN_PARAMETER}=${token}`;
}

/**
 * Name of the cookie that lets a browser go on without the token; `__Host-` where previews are
 * reached by https.
 */
export function previewCookieName(previewUrl: string): string {
  return previewUrl.startsWith('https:') ? '__Host-berth_preview' : 'berth_preview';
}

/**
 * A `Set-Cookie` value for it. Where previews are reached by https it goes with a preview that a
 * page of another site has in a frame, to each such site one of its own; by http browsers would not
 * take that.
 */
export function setPreviewCookie(previewUrl: string, value: string, secondsLeft: number): string {
  const within = previewUrl.startsWith('https:') ? 'Secure; SameSite=None; Partitioned' : 'SameSite=Lax';
  return `${previewCookieName(previewUrl)}=${value}; Path=/; Max-Age=${Math.max(0, Math.floor(secondsLeft))}; HttpOnly; ${within}`;
}

/**
 * A `Cookie` header without our cookie, and the first value of it. Other cookies stay as they are;
 * without any there is no header.
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

/** Our token in a pair of a query, however it is written; null for anything else. */
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
    // A percent sign that begins no escape: none of ours.
    return null;
  }
}
