// Rows of public preview links, and the facts behind preview access decisions. SQL only; tokens are
// derived in services/previews/token.ts and never passed here.
import { PREVIEW_LINKS } from '@berth/contract/route/limits.ts';
import type { SsoTerms } from '../../rules/access/sso.ts';
import { ssoTerms } from '../access/sso.ts';
import { sql } from 'kysely';
import type { PageRequest, Slice } from '../../rules/page.ts';
import type { LinkCreator } from '../../rules/previews/link-creator.ts';
import { selectSlice } from '../database/pages.ts';
import { CHANGES_CHANNEL } from '../database/changes.ts';
import type { LocatedSandboxRow } from '../sandboxes/sandboxes.ts';
import type { Database, DatabaseTransaction, PreviewLinkRow } from '../database/schema.ts';

export type { PreviewLinkRow };

interface NewPreviewLink extends Pick<
  PreviewLinkRow,
  | 'id'
  | 'sandbox_id'
  | 'org_id'
  | 'project_id'
  | 'port'
  | 'label'
  | 'end_user_id'
  | 'created_by'
  | 'api_key_id'
  | 'embeddable'
> {
  expiresInSeconds: number;
}

export async function insertPreviewLink(
  db: Database,
  { expiresInSeconds, ...link }: NewPreviewLink,
): Promise<PreviewLinkRow> {
  return await db
    .insertInto('preview_link')
    .values({
      ...link,
      expires_at: sql<Date>`date_trunc('milliseconds', now() + make_interval(secs => ${expiresInSeconds}))`,
    })
    .returningAll()
    .executeTakeFirstOrThrow();
}

/** Facts for the decision whether a link's creator may still share it. */
const CREATOR_COLUMNS = [
  sql<string | null>`(select role from membership
    where membership.org_id = preview_link.org_id and membership.user_id = preview_link.created_by)`.as('creator_role'),
  sql<boolean>`preview_link.api_key_id is not null and not exists (select from api_key
    where api_key.id = preview_link.api_key_id and api_key.revoked_at is null)`.as('key_revoked'),
] as const;

/** A sandbox's links that are neither expired nor revoked, newest first. */
export async function listOutstandingLinks(
  db: Database,
  sandboxId: string,
  page: PageRequest | null,
): Promise<Slice<PreviewLinkRow & { creator: LinkCreator }>> {
  const query = selectOutstanding(db, sandboxId).selectAll('preview_link').select(CREATOR_COLUMNS);
  const { rows, next } = await selectSlice(query, { at: 'created_at', tie: 'id', direction: 'desc' }, page);
  return {
    rows: rows.map(({ creator_role: role, key_revoked: keyRevoked, ...row }) => ({
      ...row,
      creator: { role, keyRevoked },
    })),
    next,
  };
}

/** Number of the links that {@link listOutstandingLinks} returns. */
export async function countOutstandingLinks(db: Database, sandboxId: string): Promise<number> {
  const counted = selectOutstanding(db, sandboxId).select(sql<number>`count(*)::int`.as('count'));
  return (await counted.executeTakeFirstOrThrow()).count;
}

function selectOutstanding(db: Database, sandboxId: string) {
  return db
    .selectFrom('preview_link')
    .where('sandbox_id', '=', sandboxId)
    .where('revoked_at', 'is', null)
    .where('expires_at', '>', sql<Date>`now()`);
}

/**
 * Deletes at most `limit` links past their retention, revoked or not, oldest first. Skips locked
 * rows. Returns the number deleted. No row refers to a link: activity rows copy their facts.
 */
export async function deleteOldPreviewLinks(db: Database, limit: number): Promise<number> {
  const result = await sql`
    delete from preview_link where id = any(array(
      select id from preview_link where expires_at < now() - make_interval(days => ${PREVIEW_LINKS.keptDaysAfterExpiry})
      order by expires_at limit ${limit} for update skip locked))`.execute(db);
  return Number(result.numAffectedRows ?? 0);
}

export async function findPreviewLink(
  db: Database,
  sandboxId: string,
  linkId: string,
): Promise<PreviewLinkRow | undefined> {
  return await db
    .selectFrom('preview_link')
    .selectAll()
    .where('id', '=', linkId)
    .where('sandbox_id', '=', sandboxId)
    .executeTakeFirst();
}

/**
 * Revokes a link of the sandbox and notifies every replica at commit. Exactly one of any number of
 * callers gets the row.
 */
export async function revokePreviewLink(
  trx: DatabaseTransaction,
  sandboxId: string,
  linkId: string,
): Promise<PreviewLinkRow | undefined> {
  const row = await trx
    .updateTable('preview_link')
    .set({ revoked_at: sql<Date>`now()` })
    .where('id', '=', linkId)
    .where('sandbox_id', '=', sandboxId)
    .where('revoked_at', 'is', null)
    .returningAll()
    .executeTakeFirst();
  if (row !== undefined) await sql`select pg_notify(${CHANGES_CHANNEL}, ${sandboxId})`.execute(trx);
  return row;
}

/** Records a use of the link, at most once a minute. Skips a row that is being written. */
export async function touchPreviewLink(db: Database, linkId: string): Promise<void> {
  await sql`update preview_link set last_used_at = now()
    where id = (select id from preview_link where id = ${linkId} for no key update skip locked)
      and (last_used_at is null or last_used_at <= now() - interval '1 minute')`.execute(db);
}

/** A public link with its sandbox. The database clock decides expiry. */
interface PublicAccessRow {
  sandbox: LocatedSandboxRow;
  port: number;
  expiresAt: Date;
  revoked: boolean;
  expired: boolean;
  usedLately: boolean;
  embeddable: boolean;
  creator: LinkCreator;
}

export async function findPublicAccess(db: Database, linkId: string): Promise<PublicAccessRow | undefined> {
  const row = await db
    .selectFrom('preview_link')
    .innerJoin('sandbox', 'sandbox.id', 'preview_link.sandbox_id')
    .leftJoin('host', 'host.id', 'sandbox.host_id')
    .selectAll('sandbox')
    .select([
      'host.url as host_url',
      'preview_link.port as link_port',
      'preview_link.embeddable as link_embeddable',
      'preview_link.expires_at as link_expires_at',
      sql<boolean>`preview_link.revoked_at is not null`.as('link_revoked'),
      sql<boolean>`preview_link.expires_at <= now()`.as('link_expired'),
      sql<boolean>`coalesce(preview_link.last_used_at > now() - interval '1 minute', false)`.as('link_used_lately'),
      ...CREATOR_COLUMNS,
    ])
    .where('preview_link.id', '=', linkId)
    .executeTakeFirst();
  if (row === undefined) return undefined;
  const { link_port, link_expires_at, link_revoked, link_expired, link_used_lately, link_embeddable, ...rest } = row;
  const { creator_role: role, key_revoked: keyRevoked, ...sandbox } = rest;
  return {
    sandbox,
    port: link_port,
    expiresAt: link_expires_at,
    revoked: link_revoked,
    expired: link_expired,
    usedLately: link_used_lately,
    embeddable: link_embeddable,
    creator: { role, keyRevoked },
  };
}

/** A sandbox with the role in its org of the signed-in person. */
interface TeamAccessRow {
  sandbox: LocatedSandboxRow;
  /** The sign-in session is the person's, and has neither ended nor expired. */
  signedIn: boolean;
  /** null: not a member. */
  role: string | null;
  /** The sign-in came from the OIDC provider. */
  viaSso: boolean;
  /** null: the org does not require SSO. */
  sso: SsoTerms | null;
}

export async function findTeamAccess(
  db: Database,
  visit: { sandboxId: string; loginId: string; userId: string },
): Promise<TeamAccessRow | undefined> {
  const row = await db
    .selectFrom('sandbox')
    .leftJoin('host', 'host.id', 'sandbox.host_id')
    .leftJoin('membership', (join) =>
      join.onRef('membership.org_id', '=', 'sandbox.org_id').on('membership.user_id', '=', visit.userId),
    )
    .innerJoin('org', 'org.id', 'sandbox.org_id')
    .leftJoin('session', (join) =>
      join
        .on('session.id', '=', visit.loginId)
        .on('session.userId', '=', visit.userId)
        .on('session.expiresAt', '>', sql<Date>`now()`),
    )
    .selectAll('sandbox')
    .select([
      'host.url as host_url',
      'membership.role as member_role',
      sql<boolean>`session.id is not null`.as('signed_in'),
      sql<boolean>`coalesce(session."viaSso", false)`.as('via_sso'),
      ssoTerms('org', 'membership.user_id').as('sso'),
    ])
    .where('sandbox.id', '=', visit.sandboxId)
    .executeTakeFirst();
  if (row === undefined) return undefined;
  const { member_role: role, signed_in: signedIn, via_sso: viaSso, sso, ...sandbox } = row;
  return { sandbox, signedIn, role, viaSso, sso };
}
