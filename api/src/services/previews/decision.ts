// Decides, with one query and no cache, whether the holder of a link or login may access a preview
// now.
import { ROLE_PERMISSIONS, role as roleName } from '@berth/contract/route/permissions.ts';
import { SANDBOX_ACTION_RULES } from '@berth/contract/sandboxes/state.ts';
import type { PreviewPlace } from '../../rules/previews/host.ts';
import { inactiveReason } from '../../rules/previews/link-creator.ts';
import { PREVIEW_PAGE } from '../../rules/previews/path.ts';
import { findPublicAccess, findTeamAccess, touchPreviewLink } from '../../store/previews/links.ts';
import type { LocatedSandboxRow } from '../../store/sandboxes/sandboxes.ts';
import { requireMembership, requirePermission } from '../../rules/access/access.ts';
import { lacksSso } from '../../rules/access/sso.ts';
import { CodedError } from '../../rules/coded-error.ts';
import { authenticate } from '../access/authentication.ts';
import type { ServiceContext } from '../context/context.ts';
import type { DerivedKeys } from '../context/secret-key.ts';
import { teamToken, type Person, type TeamTerms } from './token.ts';

/** Verified: a public link, a login from a team link with its terms, or an API key by its hash. */
export type Holder = PreviewPlace &
  ({ kind: 'public'; linkId: string } | ({ kind: 'team' } & TeamTerms & Person) | { kind: 'key'; sha256: string });

/**
 * `no_link`: no credentials of the service. `invalid_link`: not signed by this installation, or for
 * another host. `key_refused`: an API key that is invalid, or may not open the preview. `signIn`: a
 * team link without a permitted person; send a browser to its `signInUrl` (access.ts), a page of
 * the service.
 */
export type PreviewRefusal =
  | 'no_link'
  | 'invalid_link'
  | 'key_refused'
  | 'expired'
  | 'revoked'
  | 'sandbox_gone'
  | { signIn: string };

type DecisionContext = Pick<ServiceContext, 'callers' | 'db' | 'log' | 'settings'>;

/** The API key of a request, and its creator. */
export interface KeyOwner {
  keyId: string;
  userId: string;
}

export type AccessDecision =
  | { sandbox: LocatedSandboxRow; expiresAt: Date; embeddable: boolean; key?: KeyOwner; refusal?: undefined }
  | { refusal: PreviewRefusal };

/** Each decision checks the expiry of an API key. */
const NEVER = new Date(8_640_000_000_000_000);

export async function decideAccess(
  context: DecisionContext,
  keys: DerivedKeys,
  holder: Holder,
): Promise<AccessDecision> {
  switch (holder.kind) {
    case 'public':
      return await decidePublic(context, holder);
    case 'team':
      return await decideTeam(context, keys, holder);
    case 'key':
      return await decideKey(context, holder);
    default:
      return holder satisfies never;
  }
}

async function decidePublic(
  context: DecisionContext,
  { linkId, sandboxId, port }: Holder & { kind: 'public' },
): Promise<AccessDecision> {
  const link = await findPublicAccess(context.db, linkId);
  // The signature was valid, and rows are deleted only long after expiry.
  if (link === undefined) return { refusal: 'expired' };
  if (link.sandbox.id !== sandboxId || link.port !== port) return { refusal: 'invalid_link' };
  if (link.revoked) return { refusal: 'revoked' };
  if (link.expired) return { refusal: 'expired' };
  if (isGone(link.sandbox)) return { refusal: 'sandbox_gone' };
  // Visitors learn nothing about the org's keys and members.
  if (inactiveReason(link.creator) !== null) return { refusal: 'revoked' };
  // Does not delay the response.
  if (!link.usedLately) {
    touchPreviewLink(context.db, linkId).catch((error: unknown) => {
      context.log.warn({ err: error, linkId }, 'could not record the use of a preview link');
    });
  }
  return { sandbox: link.sandbox, expiresAt: link.expiresAt, embeddable: link.embeddable };
}

async function decideTeam(
  context: DecisionContext,
  keys: DerivedKeys,
  holder: Holder & { kind: 'team' },
): Promise<AccessDecision> {
  if (holder.expiresAtMs <= Date.now()) return { refusal: 'expired' };
  const access = await findTeamAccess(context.db, holder);
  const allowed = access !== undefined && access.signedIn && canPreview(access.role) && !lacksSso(access);
  // Non-members learn nothing about the sandbox.
  if (!allowed) return { refusal: signInRefusal(context, keys, holder, holder) };
  if (isGone(access.sandbox)) return { refusal: 'sandbox_gone' };
  return { sandbox: access.sandbox, expiresAt: new Date(holder.expiresAtMs), embeddable: holder.embeddable };
}

/** As the API decides about the same key. Its holder learns nothing about other orgs' sandboxes. */
async function decideKey(
  context: DecisionContext,
  { sandboxId, sha256 }: Holder & { kind: 'key' },
): Promise<AccessDecision> {
  const bearer = { kind: 'api_key', sha256: Buffer.from(sha256, 'base64url') } as const;
  try {
    const { actor, named } = await authenticate(context, { bearer, namedId: sandboxId, requestId: null });
    const { sandbox } = named;
    if (sandbox === undefined) return { refusal: 'key_refused' };
    requirePermission(actor, requireMembership(actor, sandbox.org_id, named.role), 'sandbox.preview');
    if (isGone(sandbox)) return { refusal: 'sandbox_gone' };
    const key = { keyId: actor.id, userId: actor.userId };
    return { sandbox, expiresAt: NEVER, embeddable: false, key };
  } catch (error) {
    if (error instanceof CodedError) return { refusal: 'key_refused' };
    throw error;
  }
}

/** Refusal that leads to the service's sign-in page for the team link with these terms. */
export function signInRefusal(
  { settings }: Pick<ServiceContext, 'settings'>,
  keys: DerivedKeys,
  terms: TeamTerms,
  { sandboxId, port }: PreviewPlace,
): { signIn: string } {
  const link = teamToken(keys, terms, { sandboxId, port });
  return { signIn: `${settings.publicUrl}${PREVIEW_PAGE}?link=${link}&sandbox=${sandboxId}&port=${port}` };
}

/** True if the role (as text) may see previews. */
export function canPreview(role: string | null): boolean {
  const known = roleName.safeParse(role).data;
  return known !== undefined && ROLE_PERMISSIONS[known].has('sandbox.preview');
}

/** True if the sandbox's links are dead. */
export function isGone(sandbox: LocatedSandboxRow): boolean {
  return SANDBOX_ACTION_RULES.preview_link[sandbox.status] !== 'do';
}
