// Whether who holds a link or a login is let into a preview at this moment: its row, its person,
// its sandbox. Remembers nothing; one statement a verdict.
import { ROLE_PERMISSIONS, role as roleName } from '@berth/contract/route/permissions.ts';
import { SANDBOX_ACTION_RULES } from '@berth/contract/sandboxes/state.ts';
import type { PreviewPlace } from '../../rules/previews/host.ts';
import { PREVIEW_PAGE } from '../../rules/previews/path.ts';
import { findPublicVisit, findTeamVisit, touchPreviewLink } from '../../store/previews/links.ts';
import type { LocatedSandboxRow } from '../../store/sandboxes/sandboxes.ts';
import type { ServiceContext } from '../context/context.ts';
import { teamToken, type Person } from './token.ts';

/**
 * What was shown to be genuine: a public link, or a login that came by a team link which expires
 * then.
 */
export type Holder = PreviewPlace &
  ({ kind: 'public'; linkId: string } | ({ kind: 'team'; expiresAtMs: number } & Person));

/**
 * `no_link`: nothing of ours was brought. `invalid_link`: it is none of ours, or another host's.
 * `signIn`: a team link, and nobody is known who may use it: a browser is to be sent to `signInUrl`
 * of it (preview-access.ts), which the service's page answers.
 */
export type PreviewRefusal = 'no_link' | 'invalid_link' | 'expired' | 'revoked' | 'sandbox_gone' | { signIn: string };

type JudgeContext = Pick<ServiceContext, 'db' | 'log' | 'settings'>;

export type Verdict =
  | { sandbox: LocatedSandboxRow; expiresAt: Date; refusal?: undefined }
  | { refusal: PreviewRefusal };

export async function judge(context: JudgeContext, key: Buffer, holder: Holder): Promise<Verdict> {
  return holder.kind === 'public' ? await judgePublic(context, holder) : await judgeTeam(context, key, holder);
}

async function judgePublic(
  context: JudgeContext,
  { linkId, sandboxId, port }: Holder & { kind: 'public' },
): Promise<Verdict> {
  const link = await findPublicVisit(context.db, linkId);
  // It was ours, and rows go long after their link expired.
  if (link === undefined) return { refusal: 'expired' };
  if (link.sandbox.id !== sandboxId || link.port !== port) return { refusal: 'invalid_link' };
  if (link.revoked) return { refusal: 'revoked' };
  if (link.expired) return { refusal: 'expired' };
  if (isGone(link.sandbox)) return { refusal: 'sandbox_gone' };
  // Not in the way of the answer.
  if (!link.usedLately) {
    touchPreviewLink(context.db, linkId).catch((error: unknown) => {
      context.log.warn({ err: error, linkId }, 'could not note that a preview link was used');
    });
  }
  return { sandbox: link.sandbox, expiresAt: link.expiresAt };
}

async function judgeTeam(context: JudgeContext, key: Buffer, holder: Holder & { kind: 'team' }): Promise<Verdict> {
  if (holder.expiresAtMs <= Date.now()) return { refusal: 'expired' };
  const visit = await findTeamVisit(context.db, holder);
  const allowed = visit !== undefined && visit.signedIn && mayPreview(visit.role);
  // Whoever is no member (any more) learns nothing of the sandbox.
  if (!allowed) return { refusal: askForSignIn(context, key, holder.expiresAtMs, holder) };
  if (isGone(visit.sandbox)) return { refusal: 'sandbox_gone' };
  return { sandbox: visit.sandbox, expiresAt: new Date(holder.expiresAtMs) };
}

/** To the service's page that lets a member on, by the team link that expires then. */
export function askForSignIn(
  { settings }: Pick<ServiceContext, 'settings'>,
  key: Buffer,
  expiresAtMs: number,
  { sandboxId, port }: PreviewPlace,
): { signIn: string } {
  const link = teamToken(key, expiresAtMs, { sandboxId, port });
  return { signIn: `${settings.publicUrl}${PREVIEW_PAGE}?link=${link}&sandbox=${sandboxId}&port=${port}` };
}

/** Whether a role's text is one that may see previews. */
export function mayPreview(role: string | null): boolean {
  const known = roleName.safeParse(role).data;
  return known !== undefined && ROLE_PERMISSIONS[known].has('sandbox.preview');
}

/** Its links are dead. */
export function isGone(sandbox: LocatedSandboxRow): boolean {
  return SANDBOX_ACTION_RULES.preview_link[sandbox.status] !== 'do';
}
