// Who may see a preview: what a request to a preview's host brings, held against its link, its person and its sandbox. Must not know HTTP: api/src/preview asks.
// An answer is remembered for a second at most, so that what is revoked is so everywhere within two.
import type { LocatedSandboxRow } from '../store/sandboxes.ts';
import type { ServiceContext } from './context.ts';

/** What a request to a preview's host brings of ours (rules/preview-credentials.ts takes it out). */
export interface PreviewVisit {
  sandboxId: string;
  port: number;
  token: string | null;
  /** The value of our cookie. */
  cookie: string | null;
}

export interface PreviewAccess {
  link: { kind: 'public'; linkId: string } | { kind: 'team'; loginId: string; userId: string };
  orgId: string;
  projectId: string;
  port: number;
  /** As of at most a second ago, in whatever status but `destroying` and `deleted`. */
  sandbox: LocatedSandboxRow;
  expiresAt: Date;
  /** A `Set-Cookie` value to add to the answer, when the token came in the URL. */
  setCookie: string | null;
}

/**
 * `no_link`: nothing of ours was brought. `invalid_link`: it is none of ours, or another host's. `signIn`: a team link, and nobody is known who may use it: send a browser
 * to {@link signInUrl}.
 */
export type PreviewRefusal = 'no_link' | 'invalid_link' | 'expired' | 'revoked' | 'sandbox_gone' | { signIn: string };

/** Why what is open may not stay so. `unchecked`: the database is away for too long. */
export type PreviewEnd = PreviewRefusal | 'sandbox_not_awake' | 'unchecked';

export interface PreviewLease {
  /** Resolves once what is held open may not stay so any more. */
  over: Promise<PreviewEnd>;
  close(): void;
}

/** Decides about a visit. Costs no query where the same was decided within the last second. */
export async function openPreview(
  _context: ServiceContext,
  _visit: PreviewVisit,
): Promise<{ access: PreviewAccess } | { refusal: PreviewRefusal }> {
  return await Promise.resolve({ refusal: 'no_link' });
}

/** Holds something open for as long as the access is good and the sandbox awake: take it once it is. Cheap: those of one visitor are watched together. */
export function holdPreview(_context: ServiceContext, _access: PreviewAccess): PreviewLease {
  return { over: new Promise(() => undefined), close: () => undefined };
}

/** Where a browser signs in, to come back to the path (with its query, without our tokens). */
export function signInUrl({ signIn }: { signIn: string }, path: string): string {
  return `${signIn}&path=${encodeURIComponent(path)}`;
}
