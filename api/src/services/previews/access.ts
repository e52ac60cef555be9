// Preview access: checks a request's credentials against its link, person and sandbox. Independent
// of HTTP, which api/src/preview handles. A revocation takes effect on every replica within two
// seconds.
import { createHash } from 'node:crypto';
import type { DerivedKeys } from '../context/secret-key.ts';
import { setPreviewCookie } from '../../rules/previews/credentials.ts';
import type { PreviewPlace } from '../../rules/previews/host.ts';
import { withPreviewPath } from '../../rules/previews/path.ts';
import { spendGrant } from '../../store/previews/spent-grants.ts';
import type { LocatedSandboxRow } from '../../store/sandboxes/sandboxes.ts';
import type { PreviewAccessCache, PreviewContext, PreviewLease } from './access-cache.ts';
import { cookieValue, readToken, type TeamTerms } from './token.ts';
import { signInRefusal, type Holder, type KeyOwner, type PreviewRefusal } from './decision.ts';

export type { PreviewEnd, PreviewLease } from './access-cache.ts';
export type { PreviewRefusal } from './decision.ts';

/** Credentials in a request to a preview host (extracted by rules/previews/credentials.ts). */
export interface PreviewCredentials {
  sandboxId: string;
  port: number;
  token: string | null;
  /** Value of the service's cookie. */
  cookie: string | null;
  /** The token came in a header, from a program: no cookie replaces it. */
  tokenInHeader?: boolean;
  /** Hash of a well-formed API key, in base64url. */
  apiKey?: string | null;
}

export interface PreviewAccess {
  link:
    | { kind: 'public'; linkId: string }
    | { kind: 'team'; loginId: string; userId: string }
    | { kind: 'key'; sha256: string; keyId: string; userId: string };
  orgId: string;
  projectId: string;
  port: number;
  /** At most a second old, in any status except `destroying` and `deleted`. */
  sandbox: LocatedSandboxRow;
  expiresAt: Date;
  /** Pages of other origins may frame the app. */
  embeddable: boolean;
  /**
   * A `Set-Cookie` value for the response, if the token came in the URL and the visitor has no
   * cookie of its link.
   */
  setCookie: string | null;
}

/** Longer than a grant is valid, by any replica's clock. */
const SPENT_GRANT_MINUTES = 10;

/**
 * Makes an access decision. Needs no query if cached within the last second, except for a grant,
 * which it spends.
 */
export async function openPreview(
  cache: PreviewAccessCache,
  credentials: PreviewCredentials,
): Promise<{ access: PreviewAccess } | { refusal: PreviewRefusal }> {
  return await open(cache, credentials, 'unspent');
}

async function open(
  cache: PreviewAccessCache,
  credentials: PreviewCredentials,
  grant: 'unspent' | 'spent',
): Promise<{ access: PreviewAccess } | { refusal: PreviewRefusal }> {
  const presented = presentedBy(cache, credentials, grant);
  if ('refusal' in presented) return presented;
  const { holder } = presented;
  const byUrl = presented.byUrl && credentials.tokenInHeader !== true;
  const decision = await cache.decision(holder);
  if (decision.refusal !== undefined) {
    return {
      refusal: typeof decision.refusal === 'object' ? (presented.orSignIn ?? decision.refusal) : decision.refusal,
    };
  }
  // A copy of the grant, from the history or a log, opens nothing.
  if (presented.grant !== undefined) {
    const sha256 = createHash('sha256').update(presented.grant).digest();
    const isFirst = await spendGrant(cache.context.db, sha256, SPENT_GRANT_MINUTES);
    if (!isFirst) return await open(cache, credentials, 'spent');
  }

  const { sandbox, expiresAt, embeddable } = decision;
  const link = linkOf(holder, decision);
  const setCookie =
    byUrl && link.kind !== 'key'
      ? setCookieOf(cache, link, holder, { expiresAtMs: expiresAt.getTime(), embeddable })
      : null;
  return {
    access: {
      link,
      orgId: sandbox.org_id,
      projectId: sandbox.project_id,
      port: holder.port,
      sandbox,
      expiresAt,
      embeddable,
      setCookie,
    },
  };
}

/**
 * Leases the access until it is withdrawn or the sandbox falls asleep. The caller closes the lease
 * with its connection. Leases of one visitor share one watcher.
 */
export function leasePreview(
  cache: PreviewAccessCache,
  { link, sandbox, port, expiresAt, embeddable }: PreviewAccess,
): PreviewLease {
  const place = { sandboxId: sandbox.id, port };
  return cache.lease(
    link.kind === 'team' ? { ...place, ...link, expiresAtMs: expiresAt.getTime(), embeddable } : { ...place, ...link },
  );
}

/** Sign-in URL that returns to the path (with its query, without the service's tokens). */
export function signInUrl({ signIn }: { signIn: string }, path: string): string {
  return withPreviewPath(signIn, path);
}

/** The holder proven by the request. */
interface Presented {
  holder: Holder;
  /** The token came in the URL, without the cookie that replaces it. */
  byUrl: boolean;
  /** Refusal if the holder's login is invalid: by the request's link, not the cookie's. */
  orSignIn?: PreviewRefusal;
  /** The token, if it is a grant. */
  grant?: string;
}

function presentedBy(
  cache: PreviewAccessCache,
  credentials: PreviewCredentials,
  grant: 'unspent' | 'spent',
): Presented | { refusal: PreviewRefusal } {
  const place = { sandboxId: credentials.sandboxId, port: credentials.port };
  const { keys } = cache;
  const nowMs = Date.now();
  const byCookie = (): Holder | null => {
    const cookie = credentials.cookie === null ? null : cache.readCookie(credentials.cookie, place);
    return cookie === null || cookie.expiresAtMs <= nowMs ? null : { ...place, ...cookie };
  };
  if (credentials.token === null) {
    const { apiKey = null } = credentials;
    const holder = apiKey === null ? byCookie() : ({ ...place, kind: 'key', sha256: apiKey } as const);
    return holder === null ? { refusal: 'no_link' } : { holder, byUrl: false };
  }

  const token = readToken(keys, credentials.token, place);
  if (token === null) return { refusal: 'invalid_link' };
  if (token.kind === 'public') {
    const kept = byCookie();
    const isReplaced = kept?.kind === 'public' && kept.linkId === token.linkId;
    return { holder: { ...place, ...token }, byUrl: !isReplaced };
  }
  const { expiresAtMs, embeddable } = token;
  if (expiresAtMs <= nowMs) return { refusal: 'expired' };
  if (grant === 'unspent' && token.kind === 'grant' && token.grantedUntilMs > nowMs) {
    return {
      holder: { ...place, kind: 'team', loginId: token.loginId, userId: token.userId, expiresAtMs, embeddable },
      byUrl: true,
      grant: credentials.token,
    };
  }

  // A valid cookie on at least this link's terms avoids the redirect through the service: a
  // reloaded page has its spent grant in the URL.
  const orSignIn = signInRefusal(cache.context, keys, token, place);
  const holder = byCookie();
  const isAsGood = holder?.kind === 'team' && holder.expiresAtMs >= expiresAtMs && holder.embeddable === embeddable;
  return isAsGood ? { holder, byUrl: false, orSignIn } : { refusal: orSignIn };
}

function linkOf(holder: Holder, { key }: { key?: KeyOwner }): PreviewAccess['link'] {
  switch (holder.kind) {
    case 'public':
      return { kind: holder.kind, linkId: holder.linkId };
    case 'team':
      return { kind: holder.kind, loginId: holder.loginId, userId: holder.userId };
    case 'key':
      if (key === undefined) throw new Error('a decision about an API key has no key');
      return { kind: holder.kind, sha256: holder.sha256, ...key };
    default:
      return holder satisfies never;
  }
}

function setCookieOf(
  { context: { settings }, keys }: { context: Pick<PreviewContext, 'settings'>; keys: DerivedKeys },
  link: Exclude<PreviewAccess['link'], { kind: 'key' }>,
  { sandboxId, port }: PreviewPlace,
  terms: TeamTerms,
): string {
  const value = cookieValue(keys, { ...link, ...terms }, { sandboxId, port });
  return setPreviewCookie(settings.previewUrl, value, (terms.expiresAtMs - Date.now()) / 1_000);
}
