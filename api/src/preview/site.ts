// Which site a request is for: the service, or a preview. Decides by the Host header alone, before
// anything else looks at the request, so that neither is ever reached by the other's name.
import type { IncomingMessage } from 'node:http';
import { parsePreviewHost, type PreviewPlace } from '../rules/previews/host.ts';

/**
 * `malformed`: below the preview host, and no preview. `refused`: whom it is for cannot be told for
 * sure.
 */
export type Site = 'service' | 'malformed' | 'refused' | PreviewPlace;

/** Host headers that were parsed are remembered up to this many. */
const REMEMBERED_HOSTS = 1_000;
/** `http://host/path` in place of a path (RFC 9112). */
const ABSOLUTE_TARGET = /^[a-z][a-z0-9+.-]*:\/\/([^/?#]*)(.*)$/is;

export class Sites {
  readonly #previewUrl: string;
  readonly #byHost = new Map<string, Exclude<Site, 'refused'>>();

  constructor(previewUrl: string) {
    this.#previewUrl = previewUrl;
  }

  /** Of a preview's request the target is a path afterwards, however it was written. */
  of(request: IncomingMessage): Site {
    const { host } = request.headers;
    if (host === undefined) return 'service';
    if (hasSecondHost(request.rawHeaders)) return 'refused';
    const site = this.#siteOf(host);
    const target = request.url ?? '/';
    if (target.startsWith('/')) return site;
    const [, authority, path = ''] = ABSOLUTE_TARGET.exec(target) ?? [];
    // A server must go by the target rather than by Host (RFC 9112), and others on the way went by
    // Host: where they differ, nobody is right.
    if (authority !== undefined && authority.toLowerCase() !== host.toLowerCase()) return 'refused';
    if (authority !== undefined && site !== 'service') request.url = path.startsWith('/') ? path : `/${path}`;
    return site;
  }

  #siteOf(host: string): Exclude<Site, 'refused'> {
    const known = this.#byHost.get(host);
    if (known !== undefined) return known;
    const parsed = parsePreviewHost(this.#previewUrl, host);
    const site = parsed === 'not_a_preview' ? 'service' : parsed;
    if (this.#byHost.size >= REMEMBERED_HOSTS) this.#byHost.clear();
    this.#byHost.set(host, site);
    return site;
  }
}

/** Node shows the first one only. */
function hasSecondHost(rawHeaders: readonly string[]): boolean {
  let hosts = 0;
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at];
    if (name !== undefined && name.length === 4 && name.toLowerCase() === 'host') hosts += 1;
  }
  return hosts > 1;
}
