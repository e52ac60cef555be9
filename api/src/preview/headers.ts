// Headers proxied between client and app: without hop-by-hop headers (RFC 9110) and without
// Berth's own.
import type { IncomingHttpHeaders } from 'node:http';
import { proveCookie, provenCookies } from '../rules/previews/app-cookies.ts';
import { takeCookie, takeToken } from '../rules/previews/credentials.ts';

/** Hop-by-hop headers. `Connection` names more. */
const HOP_BY_HOP = [
  'connection',
  'keep-alive',
  'proxy-authenticate',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
] as const;
/**
 * Always kept, and always last: Node changes, or refuses, a Content-Disposition that follows a
 * Content-Length.
 */
const LENGTH = 'content-length';
/** Removed from requests. Headers that describe the client are set by Berth. */
const NOT_FROM_CLIENTS: ReadonlySet<string> = new Set([
  ...HOP_BY_HOP,
  LENGTH,
  'forwarded',
  'http2-settings',
  'x-real-ip',
]);
/** Removed from responses: they address the connection or the proxies before it, not the page. */
const NOT_FROM_APPS: ReadonlySet<string> = new Set([
  ...HOP_BY_HOP,
  LENGTH,
  // An endpoint, of which the app has none.
  'alt-svc',
  // Reports to the app URLs with tokens that it does not see.
  'nel',
  // nginx, Apache, lighttpd and Perlbal would send another file or address instead.
  'x-accel-redirect',
  'x-sendfile',
  'x-lighttpd-send-file',
  'x-reproxy-url',
]);
const CLEAR_SITE_DATA = 'clear-site-data';
/** Directives for the preview's own origin. `cookies` would clear those of its siblings too. */
const OWN_SITE_DATA = ['"cache"', '"storage"'] as const;
/** Addresses the message: naming it in `Connection` does not remove it. */
const NEVER_HOP_BY_HOP = 'host';
const OURS = 'x-berth-';
const FORWARDED = 'x-forwarded-';

export interface CookieRules {
  /** Name of the preview cookie, which apps neither receive nor set. */
  name: string;
  /**
   * Previews share a site: apps receive only cookies that are proven to be their own
   * (rules/previews/app-cookies.ts), and clear none.
   */
  proven: boolean;
}

interface AppRequestHeaders {
  /** Sent to the app. `Connection` is left to the HTTP client. */
  headers: IncomingHttpHeaders;
  /** Value of the preview cookie. */
  cookie: string | null;
  hasBody: boolean;
}

/** Headers of a request to the app. `forwarded` is added. */
export function requestHeaders(
  given: IncomingHttpHeaders,
  method: string,
  cookies: CookieRules,
  forwarded: Readonly<Record<string, string>>,
): AppRequestHeaders {
  const named = namedBy(given.connection);
  const headers: IncomingHttpHeaders = {};
  for (const name in given) {
    if (NOT_FROM_CLIENTS.has(name) || name.startsWith(OURS) || name.startsWith(FORWARDED) || named?.has(name) === true)
      continue;
    headers[name] = given[name];
  }
  if (given.te !== undefined && String(given.te).toLowerCase().includes('trailers')) headers.te = 'trailers';
  if (given.expect !== undefined && given.expect.toLowerCase() !== '100-continue') delete headers.expect;
  if (given.referer?.includes('=') === true) headers.referer = takeToken(given.referer).target;
  let cookie: string | null = null;
  if (given.cookie !== undefined) {
    const taken = takeCookie(cookies.name, given.cookie);
    cookie = taken.value;
    const kept = cookies.proven ? provenCookies(taken.header ?? '') : taken.header;
    if (kept === undefined) delete headers.cookie;
    else headers.cookie = kept;
  }
  for (const name in forwarded) headers[name] = forwarded[name];

  const length = given[LENGTH];
  const chunked = given['transfer-encoding'] !== undefined;
  if (chunked) headers['transfer-encoding'] = 'chunked';
  if (length !== undefined) headers[LENGTH] = length;
  // Else Node would send an empty chunked body, which small servers do not accept.
  else if (!chunked && (method === 'POST' || method === 'PUT' || method === 'PATCH')) headers[LENGTH] = '0';
  return { headers, cookie, hasBody: chunked || (length !== undefined && length !== '0') };
}

/** Headers of a response to the client. `setCookie` is added. */
export function responseHeaders(
  given: IncomingHttpHeaders,
  cookieRules: CookieRules,
  setCookie: string | null,
): IncomingHttpHeaders {
  const named = namedBy(given.connection);
  const headers: IncomingHttpHeaders = {};
  for (const name in given) {
    if (NOT_FROM_APPS.has(name) || name.startsWith(OURS) || named?.has(name) === true) continue;
    headers[name] = given[name];
  }
  const cookies = (given['set-cookie'] ?? []).flatMap((cookie) => appsCookies(cookie, cookieRules));
  if (setCookie !== null) {
    cookies.push(setCookie);
    // The added cookie is for this client alone.
    headers['cache-control'] = 'no-store';
  }
  if (cookieRules.proven && headers[CLEAR_SITE_DATA] !== undefined) {
    const own = ownSiteData(String(headers[CLEAR_SITE_DATA]));
    if (own === '') delete headers[CLEAR_SITE_DATA];
    else headers[CLEAR_SITE_DATA] = own;
  }
  if (cookies.length > 0) headers['set-cookie'] = cookies;
  else delete headers['set-cookie'];
  if (given[LENGTH] !== undefined) headers[LENGTH] = given[LENGTH];
  return headers;
}

/** A `Set-Cookie` of an app, limited to its own host. Empty for the preview cookie's name. */
function appsCookies(cookie: string, { name: cookieName, proven }: CookieRules): string[] {
  const [pair = '', ...attributes] = cookie.split(';');
  const equals = pair.indexOf('=');
  const name = pair.slice(0, Math.max(0, equals)).trim();
  // Browsers send a nameless cookie as its value alone, which could imitate the preview cookie.
  const value = pair.slice(equals + 1).trim();
  if (name === cookieName || (name === '' && value.startsWith(`${cookieName}=`))) return [];
  const own = attributes.some(isDomain)
    ? [pair, ...attributes.filter((attribute) => !isDomain(attribute))].join(';')
    : cookie;
  return proven ? proveCookie(own) : [own];
}

/** A `Clear-Site-Data` of an app, limited to its own origin. */
function ownSiteData(value: string): string {
  const given = new Set(value.split(',').map((directive) => directive.trim()));
  return OWN_SITE_DATA.filter((directive) => given.has(directive) || given.has('"*"')).join(', ');
}

function isDomain(attribute: string): boolean {
  return /^\s*domain\s*(=|$)/i.test(attribute);
}

/** Headers named by `Connection`, in lower case; its keywords do no harm. */
function namedBy(connection: string | undefined): ReadonlySet<string> | undefined {
  if (connection === undefined || connection === 'keep-alive' || connection === 'close') return undefined;
  return new Set(
    connection
      .split(',')
      .map((name) => name.trim().toLowerCase())
      .filter((name) => name !== NEVER_HOP_BY_HOP),
  );
}
