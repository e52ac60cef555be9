// Preview links: create, list, revoke. access.ts decides about each request to a preview.
import { PREVIEW_LINKS } from '@berth/contract/route/limits.ts';
import type { PageQuery } from '@berth/contract/route/page.ts';
import type { CreatePreviewBody, PreviewInactiveReason } from '@berth/contract/previews/previews.ts';
import { SANDBOX_ACTION_RULES } from '@berth/contract/sandboxes/state.ts';
import { GUEST_PORT } from '@berth/protocol/guest.ts';
import type { Actor } from '../../rules/access/access.ts';
import { CodedError } from '../../rules/coded-error.ts';
import { readInPages, type PageFields } from '../../rules/page.ts';
import { withToken } from '../../rules/previews/credentials.ts';
import { previewOrigin } from '../../rules/previews/host.ts';
import { inactiveReason } from '../../rules/previews/link-creator.ts';
import { insertActivity } from '../../store/activity/activity.ts';
import { isId, newId } from '../../store/database/ids.ts';
import {
  countOutstandingLinks,
  findPreviewLink,
  insertPreviewLink,
  listOutstandingLinks,
  revokePreviewLink as writeRevocation,
  type PreviewLinkRow,
} from '../../store/previews/links.ts';
import { lockSandbox, type LocatedSandboxRow } from '../../store/sandboxes/sandboxes.ts';
import { hasOrgPermission, requireOrgPermission } from '../access/access.ts';
import type { ServiceContext } from '../context/context.ts';
import type { DerivedKeys } from '../context/secret-key.ts';
import { publicToken, teamToken } from './token.ts';
import { requireLegal } from '../../rules/sandboxes/action.ts';

export type { PreviewLinkRow };

/** A link that is not stored. */
export interface TeamLink {
  port: number;
  url: string;
  createdAt: Date;
  expiresAt: Date;
  label: string | null;
  endUserId: string | null;
  embeddable: boolean;
}

/** A stored link; `url` is null if the caller may not see it, or the link does not open. */
export interface PublicLink {
  row: PreviewLinkRow;
  url: string | null;
  inactiveReason: PreviewInactiveReason | null;
}

/**
 * Creates a link to a port of the sandbox, awake or not. Throws `port_forbidden`,
 * `sandbox_state_conflict`; for a public link also `preview_link_limit`.
 */
export async function createPreview(
  context: ServiceContext,
  actor: Actor,
  sandbox: LocatedSandboxRow,
  body: CreatePreviewBody,
): Promise<{ team: TeamLink } | { public: PublicLink }> {
  if (body.audience === 'public') await requireOrgPermission(context, actor, sandbox.org_id, 'sandbox.preview.share');
  if (body.port === GUEST_PORT)
    throw new CodedError('port_forbidden', `body.port: ${GUEST_PORT} is reserved for Berth's guest daemon`);

  return body.audience === 'public'
    ? { public: await createPublicLink(context, actor, sandbox, body) }
    : { team: await createTeamLink(context, actor, sandbox, body) };
}

async function createTeamLink(
  context: ServiceContext,
  actor: Actor,
  sandbox: LocatedSandboxRow,
  { port, expiresInSeconds, embeddable, ...told }: CreatePreviewBody,
): Promise<TeamLink> {
  requireLegal('preview_link', sandbox.status);
  const { label, endUserId } = withNulls(told);
  const createdAt = new Date();
  const expiresAt = new Date(createdAt.getTime() + expiresInSeconds * 1_000);
  const place = { sandboxId: sandbox.id, port };
  const url = urlOf(
    context,
    place,
    teamToken(keysOf(context), { expiresAtMs: expiresAt.getTime(), embeddable }, place),
  );
  await insertActivity(context.db, {
    ...locationOf(sandbox),
    actor,
    kind: 'preview_link_created',
    details: { audience: 'team', port, expiresAt, label, endUserId, embeddable },
  });
  return { port, url, createdAt, expiresAt, label, endUserId, embeddable };
}

async function createPublicLink(
  context: ServiceContext,
  actor: Actor,
  { id: sandboxId }: LocatedSandboxRow,
  { port, expiresInSeconds, embeddable, ...told }: CreatePreviewBody,
): Promise<PublicLink> {
  const { label, endUserId } = withNulls(told);
  return await context.db.transaction().execute(async (trx) => {
    // Held until commit: concurrent creates count each other's links, and none succeeds while the
    // sandbox is being destroyed.
    const sandbox = await lockSandbox(trx, sandboxId);
    if (sandbox === undefined) throw new Error(`the row of ${sandboxId} is gone`);
    requireLegal('preview_link', sandbox.status);
    if ((await countOutstandingLinks(trx, sandboxId)) >= PREVIEW_LINKS.outstanding) {
      const message =
        `the sandbox has ${PREVIEW_LINKS.outstanding} outstanding public links, the maximum; ` +
        'revoke some, or let them expire';
      throw new CodedError('preview_link_limit', message);
    }
    const row = await insertPreviewLink(trx, {
      id: newId('previewLink'),
      sandbox_id: sandboxId,
      org_id: sandbox.org_id,
      project_id: sandbox.project_id,
      port,
      label,
      end_user_id: endUserId,
      created_by: actor.userId,
      api_key_id: actor.kind === 'api_key' ? actor.id : null,
      embeddable,
      expiresInSeconds,
    });
    await insertActivity(trx, {
      ...locationOf(sandbox),
      actor,
      kind: 'preview_link_created',
      subject: { kind: 'preview_link', id: row.id },
      details: { audience: 'public', port, expiresAt: row.expires_at, label, endUserId, embeddable },
    });
    return { row, url: publicUrlOf(context, row), inactiveReason: null };
  });
}

/**
 * The sandbox's public links that are neither expired nor revoked, newest first; without URLs for a
 * caller who may not share.
 */
export async function listPreviews(
  context: ServiceContext,
  actor: Actor,
  sandbox: LocatedSandboxRow,
  query: PageQuery,
): Promise<{ links: PublicLink[]; fields: PageFields }> {
  const mayShare = await hasOrgPermission(context, actor, sandbox.org_id, 'sandbox.preview.share');
  const dead = SANDBOX_ACTION_RULES.preview_link[sandbox.status] !== 'do';
  const { rows, fields } = await readInPages('previews', query, (page) =>
    dead ? Promise.resolve({ rows: [], next: null }) : listOutstandingLinks(context.db, sandbox.id, page),
  );
  const links = rows.map(({ creator, ...row }) => {
    const reason = inactiveReason(creator);
    return { row, url: mayShare && reason === null ? publicUrlOf(context, row) : null, inactiveReason: reason };
  });
  return { links, fields };
}

/** Revokes a public link on every replica within seconds. Idempotent. */
export async function revokePreview(
  context: ServiceContext,
  actor: Actor,
  sandbox: LocatedSandboxRow,
  previewId: string,
): Promise<PublicLink> {
  return await context.db.transaction().execute(async (trx) => {
    const found = isId('previewLink', previewId) ? await findPreviewLink(trx, sandbox.id, previewId) : undefined;
    if (found === undefined)
      throw new CodedError('preview_link_not_found', 'the sandbox has no public link with this id');
    const revoked = await writeRevocation(trx, sandbox.id, previewId);
    // A concurrent call may have revoked it since the read.
    if (revoked === undefined) {
      const row = (await findPreviewLink(trx, sandbox.id, previewId)) ?? found;
      return { row, url: null, inactiveReason: null };
    }
    await insertActivity(trx, {
      ...locationOf(sandbox),
      actor,
      kind: 'preview_link_revoked',
      subject: { kind: 'preview_link', id: previewId },
      details: { port: revoked.port, label: revoked.label, endUserId: revoked.end_user_id },
    });
    return { row: revoked, url: null, inactiveReason: null };
  });
}

function withNulls({ label, endUserId }: Pick<CreatePreviewBody, 'label' | 'endUserId'>): {
  label: string | null;
  endUserId: string | null;
} {
  return { label: label ?? null, endUserId: endUserId ?? null };
}

function locationOf(sandbox: Pick<LocatedSandboxRow, 'id' | 'org_id' | 'project_id'>): {
  orgId: string;
  projectId: string;
  sandboxId: string;
} {
  return { orgId: sandbox.org_id, projectId: sandbox.project_id, sandboxId: sandbox.id };
}

function publicUrlOf(context: ServiceContext, row: PreviewLinkRow): string {
  const place = { sandboxId: row.sandbox_id, port: row.port };
  return urlOf(context, place, publicToken(keysOf(context), row.id, place));
}

function urlOf({ settings }: ServiceContext, place: { sandboxId: string; port: number }, token: string): string {
  return previewOrigin(settings.previewUrl, place) + withToken('/', token);
}

function keysOf({ secretKey }: ServiceContext): DerivedKeys {
  return secretKey.keysFor('preview-link');
}
