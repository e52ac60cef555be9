// Preview links of a sandbox.
import type { Calls } from './calls/calls.ts';
import type { CreatePreviewData, Preview } from './generated/raw/index.ts';
import { PREVIEW_HEADERS } from './generated/contract-tables.ts';
import { PREVIEW_SECONDS } from './generated/limits.ts';
import { BerthError } from './transport/errors.ts';
import type { CallOptions } from './transport/transport.ts';

export type { Preview };
/** Port, audience and lifetime of a link. */
export type PreviewSpec = CreatePreviewData['body'];

/** Options of {@link SandboxPreviews.url}. */
export interface PreviewUrlOptions extends CallOptions, Pick<PreviewSpec, 'audience' | 'embeddable'> {
  /** Lifetime of a new link, by default a day. */
  expiresInSeconds?: number;
}

/** Requests of programs to a preview. */
export interface PreviewAccess {
  /** Resolve paths of the app against it: `new URL('/api', url)`. */
  url: string;
  /** Secret. Send them with each request; the app receives none of them. */
  headers: Record<string, string>;
}

/** Label of the links that {@link SandboxPreviews.url} reuses. */
const URL_LABEL = 'sandbox.url';

/** Preview links open a port of a sandbox in a browser. */
export class SandboxPreviews {
  readonly #calls: Calls;
  readonly #sandboxId: string;

  /** Constructed by the SDK. */
  constructor(calls: Calls, sandboxId: string) {
    this.#calls = calls;
    this.#sandboxId = sandboxId;
  }

  /** Creates a link, by default for `team`: signed-in members of the org. */
  async create(spec: PreviewSpec, options: CallOptions = {}): Promise<Preview> {
    const { raw, with: set } = this.#calls;
    const whenLost = 'The link may have been made all the same: list the links before you make another.';
    return (
      await raw.createPreview({ path: { sandboxId: this.#sandboxId }, body: spec, ...set({ ...options, whenLost }) })
    ).preview;
  }

  /**
   * URL of a port. A link for `team` is not stored: each call creates one. A public link is reused
   * while at least half of its lifetime remains, if this function created it for the same port,
   * lifetime and embedding; otherwise another is created. A URL is never extended: call again when
   * it may have expired. All callers of this function share its links, and lose one together when
   * it is revoked or its creator leaves; the next call creates another.
   */
  async url(
    port: number,
    {
      audience = 'team',
      expiresInSeconds = PREVIEW_SECONDS.default,
      embeddable = false,
      ...options
    }: PreviewUrlOptions = {},
  ): Promise<string> {
    const isWanted = (link: Preview): boolean => {
      const expiresMs = Date.parse(link.expiresAt);
      const seconds = Math.round((expiresMs - Date.parse(link.createdAt)) / 1_000);
      const isAlike = link.port === port && link.embeddable === embeddable && seconds === expiresInSeconds;
      return link.label === URL_LABEL && isAlike && expiresMs - Date.now() >= expiresInSeconds * 500;
    };
    const found =
      audience === 'public'
        ? (await this.list(options)).find((link) => link.url !== null && isWanted(link))
        : undefined;
    const spec = { port, audience, expiresInSeconds, embeddable, label: URL_LABEL };
    return urlOf(found ?? (await this.create(spec, options)));
  }

  /**
   * How programs open a link, also where they cannot resolve preview hosts: at the service's
   * address, with headers instead of a token in the URL. A public link gives access by its own
   * token, a link for `team` by the client's API key.
   */
  async forProgram(link: Preview): Promise<PreviewAccess> {
    const { host, searchParams } = new URL(urlOf(link));
    const { url, credential } = this.#calls.endpoint;
    const own = typeof credential === 'string' ? credential : await credential();
    const token = link.audience === 'public' ? String(searchParams.get('token')) : own;
    return { url: `${url}/`, headers: { [PREVIEW_HEADERS.host]: host, [PREVIEW_HEADERS.token]: token } };
  }

  /** Lists active public links, newest first. */
  async list(options: CallOptions = {}): Promise<Preview[]> {
    const { raw, with: set } = this.#calls;
    return (await raw.listPreviews({ path: { sandboxId: this.#sandboxId }, ...set(options) })).previews;
  }

  /** Revokes a public link within seconds. Idempotent. */
  async revoke(previewId: string, options: CallOptions = {}): Promise<Preview> {
    const { raw, with: set } = this.#calls;
    return (await raw.revokePreview({ path: { sandboxId: this.#sandboxId, previewId }, ...set(options) })).preview;
  }
}

/** Throws for a link that does not open, or whose URL the caller may not see. */
function urlOf({ url, inactiveReason }: Preview): string {
  if (url !== null) return url;
  const why = inactiveReason ?? 'revoked, or not shared with the caller';
  throw new BerthError(`the preview link has no URL: ${why}. Create another`, { code: 'preview_link_inactive' });
}
