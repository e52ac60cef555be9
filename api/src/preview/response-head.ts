// Sends the head of an app's response to the client. The app is hostile: a head that Node refuses
// must not end the process.
import { STATUS_CODES, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http';
import { locationWithToken, publicLocation, publicRefresh, type OwnPlace } from '../rules/previews/locations.ts';
import { responseHeaders, type CookieRules } from './headers.ts';
import { isolate, type IsolationOptions } from './isolation.ts';

const PRINTABLE = /^[\t\x20-\x7e\x80-\xff]*$/;

export interface HeadChanges {
  cookies: CookieRules;
  /** A `Set-Cookie` value to add. */
  setCookie: string | null;
  isolation: IsolationOptions;
  place: OwnPlace;
  /** URL and token of a visitor without the cookie of a public link. */
  shown: { url: string; token: string } | null;
  /** The response is for its client alone. */
  noStore: boolean;
}

/**
 * Sends status and headers, and the trailers at the end of the app's response. Returns false, with
 * nothing sent, when Node refuses the head.
 */
export function sendHead(from: IncomingMessage, to: ServerResponse, changes: HeadChanges): boolean {
  const status = from.statusCode ?? 0;
  if (status < 200 || status > 999) return false;
  const reason = from.statusMessage !== undefined && PRINTABLE.test(from.statusMessage) ? from.statusMessage : '';
  const { cookies, setCookie, isolation, noStore } = changes;
  const headers = responseHeaders(from.headers, cookies, setCookie);
  isolate(headers, isolation);
  relocate(headers, changes);
  if (noStore) headers['cache-control'] = 'no-store';
  // HTTP/1.0 clients take the end of the connection for the end of a response without a length.
  const isKept = to.shouldKeepAlive && to.req.httpVersion !== '1.0';
  headers.connection = isKept ? 'keep-alive' : 'close';
  try {
    to.writeHead(status, reason || (STATUS_CODES[status] ?? ''), headers);
  } catch {
    // Node validates names and values.
    return false;
  }
  if (from.headers['transfer-encoding'] !== undefined) from.once('end', () => addTrailers(from, to));
  return true;
}

/** Keeps redirects of the app on the preview, and the token of its visitor from other origins. */
function relocate(headers: IncomingHttpHeaders, { place, shown }: HeadChanges): void {
  for (const name of ['location', 'content-location'] as const) {
    const given = headers[name];
    if (given !== undefined) headers[name] = publicLocation(given, place);
  }
  if (headers.refresh !== undefined) headers.refresh = publicRefresh(String(headers.refresh), place);
  if (shown === null) return;
  if (headers.location !== undefined) headers.location = locationWithToken(headers.location, shown.url, shown.token);
  headers['referrer-policy'] = 'same-origin';
}

/** Their rules hold in the head only; a proxy may move trailers there. */
const NO_TRAILERS = new Set(['content-length', 'set-cookie', 'clear-site-data']);

function addTrailers({ trailers }: IncomingMessage, to: ServerResponse): void {
  const allowed = Object.entries(responseHeaders(trailers, { name: '', proven: false }, null)).filter(
    ([name]) => !NO_TRAILERS.has(name),
  );
  if (allowed.length > 0) to.addTrailers(Object.fromEntries(allowed));
}
