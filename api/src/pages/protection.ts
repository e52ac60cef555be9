// What keeps other sites away from the pages: headers of every answer, and the refusal of forms
// that another site sends.
import type { IncomingHttpHeaders } from 'node:http';
import { previewOrigin, readPreviewPlace } from '../rules/previews/host.ts';
import { PREVIEW_PAGE } from '../rules/previews/path.ts';

/**
 * The policy of a page: no script, no frame, no resource but the style; its forms lead here alone.
 *
 * @param elsewhere sources to which a form may be sent on by redirects
 */
export function contentPolicy(elsewhere: readonly string[] = []): string {
  const formAction = ["'self'", ...elsewhere].join(' ');
  return `default-src 'none'; style-src 'self'; form-action ${formAction}; frame-ancestors 'none'; base-uri 'none'`;
}

/**
 * The way to a provider is a chain of redirects through hosts that nobody here knows (a provider
 * may itself sign people in at another), and browsers hold each of them against the policy of the
 * page that the form was on.
 */
export function providerSources(publicUrl: string): string[] {
  return publicUrl.startsWith('https://') ? ['https:'] : ['https:', 'http:'];
}

/**
 * The way back to a team link's page leads on to its preview, at once: that is the only host of
 * previews that a form may lead to.
 */
export function previewSources(previewUrl: string, returnTo: string | null): string[] {
  const url = returnTo === null ? null : new URL(returnTo, previewUrl);
  if (url === null || url.pathname !== PREVIEW_PAGE) return [];
  const place = readPreviewPlace(url.searchParams.get('sandbox') ?? '', url.searchParams.get('port') ?? '');
  return place === null ? [] : [previewOrigin(previewUrl, place)];
}

/**
 * Beside the policy. The referrer stays within the service, because tokens are in addresses: with
 * `no-referrer` browsers would send `Origin: null` with the service's own forms, which nobody can
 * tell from a foreign page's.
 */
export const PAGE_HEADERS: Readonly<Record<string, string>> = {
  'content-security-policy': contentPolicy(),
  'referrer-policy': 'same-origin',
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
};

/**
 * Whether a form was sent by a page of another site. Browsers say where a request comes from: in
 * `Sec-Fetch-Site` where the connection is safe, else in `Origin`. What says neither is no browser,
 * and has no cookies of anybody's.
 */
export function isForeign(headers: IncomingHttpHeaders, publicUrl: string): boolean {
  const site = headers['sec-fetch-site'];
  // "none": the person did it in the browser's own interface, such as a reload.
  if (site !== undefined) return site !== 'same-origin' && site !== 'none';
  const { origin, host } = headers;
  if (origin === undefined || origin === publicUrl) return false;
  // By whichever name this service was reached: a cookie of one name is not sent to another.
  return !URL.canParse(origin) || host === undefined || new URL(origin).host !== host.toLowerCase();
}
