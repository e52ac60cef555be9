// Sends refusals: a small page to browsers, the error envelope of the API to other clients. The
// page has inline styles and no scripts, because every path of a preview's host belongs to the app.
import { createHash } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { BRAND } from '../pages/parts/layout.ts';
import { STYLE } from '../pages/parts/style.ts';
import { html } from '../rules/html.ts';
import { statusOf, type Refusal } from './refusals.ts';

const STYLE_HASH = createHash('sha256').update(STYLE).digest('base64');
const STYLE_SOURCE = `'sha256-${STYLE_HASH}'`;
const HEADERS: Readonly<Record<string, string>> = {
  'cache-control': 'no-store',
  'content-security-policy': `default-src 'none'; style-src ${STYLE_SOURCE}; form-action 'none'; base-uri 'none'`,
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
  // As of the app (isolation.ts), or the browser ignores the app's.
  'origin-agent-cluster': '?1',
  vary: 'Accept',
};

/** Sends the refusal with its request id. Nothing may have been sent before. */
export function sendRefusal(
  request: IncomingMessage,
  response: ServerResponse,
  refusal: Refusal,
  requestId: string,
): void {
  const wantsPage = request.headers.accept?.includes('text/html') === true;
  const body = Buffer.from(
    wantsPage ? pageOf(refusal) : JSON.stringify({ error: { message: refusal.message, code: refusal.code } }),
  );
  if (!request.complete) response.shouldKeepAlive = false;
  for (const name of response.getHeaderNames()) response.removeHeader(name);
  response.statusMessage = '';
  response.writeHead(statusOf(refusal), {
    ...HEADERS,
    'x-request-id': requestId,
    'content-type': wantsPage ? 'text/html; charset=utf-8' : 'application/json; charset=utf-8',
    'content-length': body.byteLength,
    ...(refusal.retryAfterSeconds === undefined ? {} : { 'retry-after': String(refusal.retryAfterSeconds) }),
  });
  response.end(body);
}

/** Redirects a browser, with GET. */
export function redirect(
  response: ServerResponse,
  location: string,
  requestId: string,
  setCookie: string | null = null,
): void {
  response.writeHead(303, {
    ...HEADERS,
    'x-request-id': requestId,
    ...(setCookie === null ? {} : { 'set-cookie': setCookie }),
    location,
    'content-length': 0,
  });
  response.end();
}

/** Forwards a browser by a page, so that the next request comes from the preview's own origin. */
export function forward(response: ServerResponse, location: string, requestId: string, setCookie: string | null): void {
  const content = html`<p><a href="${location}">Open the preview</a></p>`;
  const body = Buffer.from(pageOf({ title: 'Opening the preview', content }));
  response.writeHead(200, {
    ...HEADERS,
    'x-request-id': requestId,
    ...(setCookie === null ? {} : { 'set-cookie': setCookie }),
    refresh: `0; url=${location}`,
    'content-type': 'text/html; charset=utf-8',
    'content-length': body.byteLength,
  });
  response.end(body);
}

function pageOf({ title, content }: Pick<Refusal, 'title' | 'content'>): string {
  const page = html`<!doctype html>
    <html lang="en">
      <head>
        <meta charset="utf-8" />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <meta name="color-scheme" content="light dark" />
        <meta name="robots" content="noindex" />
        <title>${title} · Berth</title>
        <style></style>
      </head>
      <body>
        ${BRAND}
        <main>
          <h1>${title}</h1>
          ${content}
        </main>
      </body>
    </html>`.toString();
  // The template would escape the style; the policy's hash covers these bytes.
  return page.replace('<style></style>', () => `<style>${STYLE}</style>`);
}
