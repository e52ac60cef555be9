// The cookie of a sign-in session: set, read, clear. Knows only the headers of requests.
import { loginCookieName, type Login } from '../services/people/sign-in-port.ts';

/** Limit on the cookie's length. Every valid credential is shorter. */
const LONGEST_CREDENTIAL = 512;

/**
 * A `Set-Cookie` value that keeps the login in the browser until it expires. Inaccessible to
 * scripts and to other sites' posts.
 */
export function loginCookie(publicUrl: string, login: Pick<Login, 'credential' | 'expiresAt'>): string {
  const secondsLeft = Math.max(0, Math.floor((login.expiresAt.getTime() - Date.now()) / 1_000));
  return cookie(publicUrl, loginCookieName(publicUrl), encodeURIComponent(login.credential), secondsLeft);
}

/** A `Set-Cookie` value that clears the login. */
export function clearedLoginCookie(publicUrl: string): string {
  return cookie(publicUrl, loginCookieName(publicUrl), '', 0);
}

/**
 * The credential in a request's `Cookie` header; null if there is none. SignIn checks its validity.
 */
export function readLoginCookie(publicUrl: string, cookieHeader: string | undefined): string | null {
  const text = readCookie(loginCookieName(publicUrl), cookieHeader);
  return text === null || text === '' || text.length > LONGEST_CREDENTIAL ? null : text;
}

/**
 * A `Set-Cookie` value with the attributes of all the service's cookies; `__Host-` names need
 * exactly these under https.
 */
export function cookie(publicUrl: string, name: string, encodedValue: string, maxAgeSeconds: number): string {
  const secure = publicUrl.startsWith('https://') ? '; Secure' : '';
  return `${name}=${encodedValue}; Path=/; Max-Age=${maxAgeSeconds}; HttpOnly; SameSite=Lax${secure}`;
}

/**
 * The decoded value of the first cookie with the name; null if there is none that can be decoded.
 */
export function readCookie(name: string, cookieHeader: string | undefined): string | null {
  for (const pair of (cookieHeader ?? '').split(';')) {
    const equals = pair.indexOf('=');
    if (equals === -1 || pair.slice(0, equals).trim() !== name) continue;
    try {
      return decodeURIComponent(pair.slice(equals + 1).trim());
    } catch {
      // Malformed escape: not set by this service.
      return null;
    }
  }
  return null;
}
