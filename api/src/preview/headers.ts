// The headers that pass between a visitor and an app, both ways: without those that mean one
// connection only (RFC 9110), and without ours.
import type { IncomingHttpHeaders } from 'node:http';
import { takeCookie, takeToken } from '../rules/previews/credentials.ts';

/** Of one connection, whichever way. `Connection` names more. */
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
 * Put behind the others, whether `Connection` names it or not: of a Content-Disposition that
 * follows it Node sends other bytes, or refuses to.
 */
const LENGTH = 'content-length';
/** A visitor who could set these would speak for whoever stands in between. */
const NOT_FROM_VISITORS: ReadonlySet<string> = new Set([
  ...HOP_BY_HOP,
  LENGTH,
  'forwarded',
  'http2-settings',
  'x-real-ip',
]);
const NOT_FROM_APPS: ReadonlySet<string> = new Set([...HOP_BY_HOP, LENGTH]);
/** Addresses the message: whoever names it in `Connection` does not get rid of it. */
const NOT_TO_NAME = 'host';
const OURS = 'x-berth-';
const FORWARDED = 'x-forwarded-';

export interface VisitorsHeaders {
  /** What an app is given; `Connection` is the client's to add. */
  headers: IncomingHttpHeaders;
  /** The value of our cookie. */
  cookie: string | null;
  hasBody: boolean;
}

/** Of a request. `method` says whether a message without a body says so. */
export function headersForApp(given: IncomingHttpHeaders, method: string, cookieName: string): VisitorsHeaders {
  const named = namedBy(given.connection);
  const headers: IncomingHttpHeaders = {};
  for (const name in given) {
    if (NOT_FROM_VISITORS.has(name) || name.startsWith(OURS) || name.startsWith(FORWARDED) || named?.has(name) === true)
      continue;
    headers[name] = given[name];
  }
  const length = given[LENGTH];
  if (length !== undefined) headers[LENGTH] = length;
  const chunked = given['transfer-encoding'] !== undefined;
  const hasBody = chunked || (length !== undefined && length !== '0');
  if (chunked) headers['transfer-encoding'] = 'chunked';
  // Without it the client would send an empty body in chunks, which small servers do not take.
  else if (length === undefined && (method === 'POST' || method === 'PUT' || method === 'PATCH')) headers[LENGTH] = '0';
  if (given.te !== undefined && String(given.te).toLowerCase().includes('trailers')) headers.te = 'trailers';
  if (given.expect !== undefined && given.expect.toLowerCase() !== '100-continue') delete headers.expect;

  let cookie: string | null = null;
  if (given.cookie !== undefined) {
    const taken = takeCookie(cookieName, given.cookie);
    cookie = taken.value;
    if (taken.header === undefined) delete headers.cookie;
    else headers.cookie = taken.header;
  }
  if (given.referer?.includes('=') === true) headers.referer = takeToken(given.referer).target;
  return { headers, cookie, hasBody };
}

/** Of an answer. `setCookie` is ours to add. */
export function headersForVisitor(
  given: IncomingHttpHeaders,
  cookieName: string,
  setCookie: string | null,
): IncomingHttpHeaders {
  const named = namedBy(given.connection);
  const headers: IncomingHttpHeaders = {};
  for (const name in given) {
    if (NOT_FROM_APPS.has(name) || name.startsWith(OURS) || named?.has(name) === true) continue;
    headers[name] = given[name];
  }
  const cookies = (given['set-cookie'] ?? []).flatMap((cookie) => appsCookie(cookie, cookieName) ?? []);
  if (setCookie !== null) {
    cookies.push(setCookie);
    // Ours is for this visitor alone.
    headers['cache-control'] = 'no-store';
  }
  if (cookies.length > 0) headers['set-cookie'] = cookies;
  else delete headers['set-cookie'];
  if (given[LENGTH] !== undefined) headers[LENGTH] = given[LENGTH];
  return headers;
}

/** A `Set-Cookie` of an app, for its own host alone; null when it has our cookie's name. */
function appsCookie(cookie: string, cookieName: string): string | null {
  const [pair = '', ...attributes] = cookie.split(';');
  const equals = pair.indexOf('=');
  const name = pair.slice(0, Math.max(0, equals)).trim();
  // A cookie without a name is sent as its value alone, which may read like ours.
  const value = pair.slice(equals + 1).trim();
  if (name === cookieName || (name === '' && value.startsWith(`${cookieName}=`))) return null;
  if (!attributes.some(isDomain)) return cookie;
  return [pair, ...attributes.filter((attribute) => !isDomain(attribute))].join(';');
}

function isDomain(attribute: string): boolean {
  return /^\s*domain\s*(=|$)/i.test(attribute);
}

/** What a `Connection` header names beside the words that are its own. */
function namedBy(connection: string | undefined): ReadonlySet<string> | undefined {
  if (connection === undefined || connection === 'keep-alive' || connection === 'close') return undefined;
  return new Set(
    connection
      .split(',')
      .map((name) => name.trim().toLowerCase())
      .filter((name) => name !== NOT_TO_NAME),
  );
}
