// Decides whether a request is for the service or for a preview, by its Host header, or by a header
// that names the preview instead. Runs before anything else reads the request, so that neither is
// reachable by the other's name.
import type { IncomingMessage } from 'node:http';
import { PREVIEW_HEADERS } from '@berth/contract/previews/previews.ts';
import { parsePreviewHost, type PreviewPlace } from '../rules/previews/host.ts';

/** `malformed`: below the preview host, but no preview. `ambiguous`: names two hosts. */
export type Site = 'service' | 'malformed' | 'ambiguous' | PreviewPlace;

/** Capacity of the cache of parsed Host headers. */
const CACHED_HOSTS = 1_000;
/** Absolute form, `http://host/path` (RFC 9112). */
const ABSOLUTE_TARGET = /^[a-z][a-z0-9+.-]*:\/\/([^/?#]*)(.*)$/is;

export class SiteResolver {
  readonly #previewUrl: string;
  readonly #byHost = new Map<string, Exclude<Site, 'ambiguous'>>();

  constructor(previewUrl: string) {
    this.#previewUrl = previewUrl;
  }

  /**
   * Also rewrites a preview's request as a browser would have sent it: its target to origin form,
   * its Host to the preview that a header names.
   */
  resolve(request: IncomingMessage): Site {
    const { host, [PREVIEW_HEADERS.host]: named } = request.headers;
    const site = this.#resolveHost(request);
    if (named === undefined || site === 'ambiguous') return site;
    if (site !== 'service') return named === host ? site : 'ambiguous';
    request.headers.host = String(named);
    const target = request.url ?? '/';
    if (!target.startsWith('/')) return 'ambiguous';
    const place = this.#siteOf(String(named));
    return place === 'service' ? 'malformed' : place;
  }

  #resolveHost(request: IncomingMessage): Site {
    const { host } = request.headers;
    if (host === undefined) return 'service';
    if (hasSecondHost(request.rawHeaders)) return 'ambiguous';
    const site = this.#siteOf(host);
    const target = request.url ?? '/';
    if (target.startsWith('/')) return site;
    const [, authority, path = ''] = ABSOLUTE_TARGET.exec(target) ?? [];
    // A server must prefer the target to Host (RFC 9112), but proxies in between may have used
    // Host: refuse requests where they differ.
    if (authority !== undefined && authority.toLowerCase() !== host.toLowerCase()) return 'ambiguous';
    if (authority !== undefined && site !== 'service') request.url = path.startsWith('/') ? path : `/${path}`;
    return site;
  }

  #siteOf(host: string): Exclude<Site, 'ambiguous'> {
    const known = this.#byHost.get(host);
    if (known !== undefined) return known;
    const parsed = parsePreviewHost(this.#previewUrl, host);
    const site = parsed === 'not_a_preview' ? 'service' : parsed;
    if (this.#byHost.size >= CACHED_HOSTS) this.#byHost.clear();
    this.#byHost.set(host, site);
    return site;
  }
}

/** `headers.host` has only the first. */
function hasSecondHost(rawHeaders: readonly string[]): boolean {
  let hosts = 0;
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at];
    if (name !== undefined && name.length === 4 && name.toLowerCase() === 'host') hosts += 1;
  }
  return hosts > 1;
}
