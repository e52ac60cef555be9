// The cookie that holds a login in a browser: how it is set, read and taken away. Knows nothing of
// requests beyond their header.
import { loginCookieName, type Login } from '../services/people/sign-in-port.ts';

/** No credential is as long; a longer cookie is not worth a look. */
const LONGEST_CREDENTIAL = 512;

/**
 * A `Set-Cookie` value that keeps the login in the browser until it ends. Out of reach for scripts
 * and for other sites' posts.
 */
export function loginCookie(publicUrl: string, login: Pick<Login, 'credential' | 'expiresAt'>): string {
  const secondsLeft = Math.max(0, Math.floor((login.expiresAt.getTime() - Date.now()) / 1_000));
  return cookie(publicUrl, loginCookieName(publicUrl), encodeURIComponent(login.credential), secondsLeft);
}

/** A `Set-Cookie` value that takes the login out of the browser. */
export function clearedLoginCookie(publicUrl: string): string {
  return cookie(publicUrl, loginCookieName(publicUrl), '', 0);
}

/**
 * The login's credential out of a request's `Cookie` header; null when there is none. Whether it is
 * good for anything, SignIn says.
 */
export function readLoginCookie(publicUrl: string, cookieHeader: string | undefined): string | null {
  const text = readCookie(loginCookieName(publicUrl), cookieHeader);
  return text === null || text === '' || text.length > LONGEST_CREDENTIAL ? null : text;
}

/**
 * A `Set-Cookie` value with what every cookie of the service has; `__Host-` names need exactly this
 * under https.
 */
export function cookie(publicUrl: string, name: string, encodedValue: string, maxAgeSeconds: number): string {
  const secure = publicUrl.startsWith('https://') ? '; Secure' : '';
  return `${name}=${encodedValue}; Path=/; Max-Age=${maxAgeSeconds}; HttpOnly; SameSite=Lax${secure}`;
}

/**
 * The decoded value of a cookie, the first of its name; null when there is none that can be
 * decoded.
 */
export function readCookie(name: string, cookieHeader: string | undefined): string | null {
  for (const pair of (cookieHeader ?? '').split(';')) {
    const equals = pair.indexOf('=');
    if (equals === -1 || pair.slice(0, equals).trim() !== name) continue;
    try {
      return decodeURIComponent(pair.slice(equals + 1).trim());
    } catch {
      // A percent sign that begins no escape: none of ours.
      return null;
    }
  }
  return null;
}
