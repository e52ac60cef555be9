// Protection of pages from other sites: response headers, and refusal of cross-site forms.
import type { IncomingHttpHeaders } from 'node:http';
import { previewOrigin, readPreviewPlace } from '../../rules/previews/host.ts';
import { PREVIEW_PAGE } from '../../rules/previews/path.ts';

/**
 * Content security policy of a page: no frames, no resources except the style; forms
 * lead to this service only.
 * @param elsewhere sources to which redirects may send a form on
 * @param script URL of the page's script; null: no scripts
 */
export function contentPolicy(elsewhere: readonly string[] = [], script: string | null = null): string {
  const formAction = ["'self'", ...elsewhere].join(' ');
  const scripts = script === null ? '' : `; script-src ${script}`;
  const base = `default-src 'none'; style-src 'self'; form-action ${formAction}`;
  return `${base}; frame-ancestors 'none'; base-uri 'none'${scripts}`;
}

/**
 * Form targets for sign-in at a provider. The provider may redirect through unknown hosts (e.g. to
 * sign people in at another provider), and browsers check each redirect against the policy of the
 * form's page.
 */
export function providerSources(publicUrl: string): string[] {
  return publicUrl.startsWith('https://') ? ['https:'] : ['https:', 'http:'];
}

/**
 * Form target for a return to a team link's page, which redirects to its preview: the only preview
 * host a form may lead to.
 */
export function previewSources(previewUrl: string, returnTo: string | null): string[] {
  const url = returnTo === null ? null : new URL(returnTo, previewUrl);
  if (url === null || url.pathname !== PREVIEW_PAGE) return [];
  const place = readPreviewPlace(url.searchParams.get('sandbox') ?? '', url.searchParams.get('port') ?? '');
  return place === null ? [] : [previewOrigin(previewUrl, place)];
}

/**
 * Headers besides the policy. The referrer stays within the service, because URLs hold tokens.
 * `no-referrer` does not work: browsers would send `Origin: null` with the service's own forms, as
 * with another site's.
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
 * True if a page of another site sent the form. Browsers report the source in `Sec-Fetch-Site` on
 * secure connections, else in `Origin`. A client that sends neither is no browser and holds no
 * cookies of a user.
 */
export function isForeign(headers: IncomingHttpHeaders, publicUrl: string): boolean {
  const site = headers['sec-fetch-site'];
  // "none": an action in the browser's own interface, such as a reload.
  if (site !== undefined) return site !== 'same-origin' && site !== 'none';
  const { origin, host } = headers;
  if (origin === undefined || origin === publicUrl) return false;
  // Compares with the requested host name, whichever it is: cookies of one name are not sent to
  // another.
  return !URL.canParse(origin) || host === undefined || new URL(origin).host !== host.toLowerCase();
}
