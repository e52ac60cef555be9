// Decides from a request's headers whether the page that sent it may use the visitor's access to a
// preview. Cookies do not tell senders apart: all previews may be one site, and `SameSite`
// separates sites only. Browsers state the sender in `Sec-Fetch-*` (https and localhost only) and
// `Origin` (WebSockets, unsafe methods, CORS); programs send neither. Pure.
import { parsePreviewHost } from './host.ts';

interface SentRequest {
  method: string;
  isWebSocket: boolean;
  /** The URL has a link's token. */
  hasToken: boolean;
  /** Origin of the requested preview, as in the address bar. */
  ownOrigin: string;
  headers: Readonly<Record<string, string | string[] | undefined>>;
}

/** `if_embeddable`: only if the link allows frames of other sites. */
export type SenderVerdict = 'accepted' | 'if_embeddable' | 'rejected';

export function judgeSender(previewUrl: string, request: SentRequest): SenderVerdict {
  const { method, isWebSocket, hasToken, ownOrigin, headers } = request;
  const { origin, 'sec-fetch-site': site, 'sec-fetch-mode': mode, 'sec-fetch-dest': destination } = headers;
  // Forms of a page with the referrer policy `no-referrer` have the origin `null`.
  if (origin !== undefined && origin !== ownOrigin && !(origin === 'null' && site === 'same-origin')) return 'rejected';
  // `none`: an address that the visitor typed, or a bookmark.
  if (site === 'same-origin' || site === 'none') return 'accepted';

  const referrer = referrerOf(previewUrl, ownOrigin, headers['referer']);
  // A program, or a browser that states no sender.
  if (site === undefined) return origin === undefined && referrer === 'sibling' && !hasToken ? 'rejected' : 'accepted';

  const isNavigation = mode === 'navigate' && !isWebSocket && (method === 'GET' || method === 'HEAD');
  if (!isNavigation) return 'rejected';
  if (destination !== 'document') return 'if_embeddable';
  // Siblings are same-site, or cross-site if the preview host is a public suffix.
  const isFromSibling = referrer === 'sibling' || (referrer === 'none' && site === 'same-site');
  return hasToken || !isFromSibling ? 'accepted' : 'rejected';
}

/** The page named in `Referer`. Pages can hide themselves, and cannot name another origin. */
function referrerOf(previewUrl: string, ownOrigin: string, referer: unknown): 'none' | 'sibling' | 'other' {
  if (typeof referer !== 'string' || !URL.canParse(referer)) return 'none';
  const { origin, host } = new URL(referer);
  return origin === ownOrigin || parsePreviewHost(previewUrl, host) === 'not_a_preview' ? 'other' : 'sibling';
}
