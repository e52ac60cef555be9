// Rows of invitations. SQL only; callers pass token hashes. An invitation is pending until it is
// accepted, revoked or expired by the database clock.
import type { Role } from '@berth/contract/route/permissions.ts';
import type { Invitation } from '@berth/contract/orgs/invitations.ts';
import { sql, type SelectQueryBuilder } from 'kysely';
import type { PageRequest, Slice } from '../../rules/page.ts';
import { selectSlice } from '../database/pages.ts';
import type { Database, DatabaseTransaction, InvitationRow, Tables } from '../database/schema.ts';

export type InvitationStatus = Invitation['status'];
export type InvitationWithStatus = InvitationRow & { status: InvitationStatus };

const NOW = sql<Date>`now()`;
const STATUS = sql<InvitationStatus>`
  case
    when accepted_at is not null then 'accepted'
    when revoked_at is not null then 'revoked'
    when expires_at <= now() then 'expired'
    else 'pending' end`;

interface NewInvitation {
  id: string;
  orgId: string;
  email: string;
  role: Role;
  invitedBy: string;
  days: number;
}

export async function insertInvitation(
  trx: DatabaseTransaction,
  invitation: NewInvitation,
): Promise<InvitationWithStatus> {
  return await trx
    .insertInto('invitation')
    .values({
      id: invitation.id,
      org_id: invitation.orgId,
      email: invitation.email,
      role: invitation.role,
      invited_by: invitation.invitedBy,
      expires_at: sql<Date>`now() + ${invitation.days} * interval '1 day'`,
    })
    .returningAll()
    .returning(STATUS.as('status'))
    .executeTakeFirstOrThrow();
}

/** The org's pending invitations, newest first. */
export async function listPendingInvitations(
  db: Database,
  orgId: string,
  page: PageRequest | null,
): Promise<Slice<InvitationWithStatus>> {
  const pending = selectWithStatus(db)
    .where('org_id', '=', orgId)
    .where('accepted_at', 'is', null)
    .where('revoked_at', 'is', null)
    .where('expires_at', '>', NOW);
  return await selectSlice(pending, { at: 'created_at', tie: 'id', direction: 'desc' }, page);
}

export async function findInvitation(
  db: Database,
  orgId: string,
  invitationId: string,
): Promise<InvitationWithStatus | undefined> {
  return await selectWithStatus(db).where('org_id', '=', orgId).where('id', '=', invitationId).executeTakeFirst();
}

export async function findInvitationByHash(
  db: Database,
  tokenSha256: Buffer,
): Promise<InvitationWithStatus | undefined> {
  return await selectWithStatus(db).where('token_sha256', '=', tokenSha256).executeTakeFirst();
}

/**
 * Revokes an invitation that was neither accepted nor revoked. Keeps its token, so that its holder
 * sees the revocation.
 */
export async function markRevoked(
  trx: DatabaseTransaction,
  invitationId: string,
): Promise<InvitationWithStatus | undefined> {
  return await trx
    .updateTable('invitation')
    .set({ revoked_at: NOW })
    .where('id', '=', invitationId)
    .where('accepted_at', 'is', null)
    .where('revoked_at', 'is', null)
    .returningAll()
    .returning(STATUS.as('status'))
    .executeTakeFirst();
}

/** Revokes the address's invitation, neither accepted nor revoked (at most one). Returns its id. */
export async function revokeEarlier(
  trx: DatabaseTransaction,
  orgId: string,
  email: string,
): Promise<string | undefined> {
  const row = await trx
    .updateTable('invitation')
    .set({ revoked_at: NOW })
    .where('org_id', '=', orgId)
    .where('email', '=', email)
    .where('accepted_at', 'is', null)
    .where('revoked_at', 'is', null)
    .returning('id')
    .executeTakeFirst();
  return row?.id;
}

/** Revokes the person's pending invitations except for the roles. Returns them, oldest first. */
export async function revokeSentBy(
  trx: DatabaseTransaction,
  sent: { orgId: string; invitedBy: string; keptRoles: readonly string[] },
): Promise<InvitationRow[]> {
  const rows = await trx
    .updateTable('invitation')
    .set({ revoked_at: NOW })
    .where('org_id', '=', sent.orgId)
    .where('invited_by', '=', sent.invitedBy)
    .where(sql<boolean>`role <> all(${[...sent.keptRoles]}::text[])`)
    .where('accepted_at', 'is', null)
    .where('revoked_at', 'is', null)
    .where('expires_at', '>', NOW)
    .returningAll()
    .execute();
  return rows.toSorted((a, b) => a.created_at.getTime() - b.created_at.getTime() || (a.id < b.id ? -1 : 1));
}

export async function markAccepted(trx: DatabaseTransaction, invitationId: string, userId: string): Promise<void> {
  await trx
    .updateTable('invitation')
    .set({ accepted_at: NOW, accepted_by: userId })
    .where('id', '=', invitationId)
    .execute();
}

interface SentLately {
  total: number;
  sameAddress: number;
  /** Time until the oldest counted invitation is an hour old. */
  secondsLeft: number;
}

/** Number of invitations a person sent within the last hour, in total and to the address. */
export async function countSentLately(db: Database, invitedBy: string, email: string): Promise<SentLately> {
  const toAddress = sql`filter (where email = ${email})`;
  return await db
    .selectFrom('invitation')
    .select([
      sql<number>`count(*)::int`.as('total'),
      sql<number>`count(*) ${toAddress}::int`.as('sameAddress'),
      sql<number>`coalesce(ceil(extract(epoch from min(created_at) + interval '1 hour' - now())), 0)::int`.as(
        'secondsLeft',
      ),
    ])
    .where('invited_by', '=', invitedBy)
    .where('created_at', '>', sql<Date>`now() - interval '1 hour'`)
    .executeTakeFirstOrThrow();
}

/** Data for the mail of an invitation. */
export interface InvitationForMail {
  email: string;
  role: Role;
  expires_at: Date;
  org_name: string;
  /** null: the account was deleted. */
  inviter_name: string | null;
}

/** Sets or replaces the token of an invitation awaiting its mail; undefined if it awaits none. */
export async function writeInvitationToken(
  trx: DatabaseTransaction,
  invitationId: string,
  tokenSha256: Buffer,
): Promise<InvitationForMail | undefined> {
  const given = await trx
    .updateTable('invitation')
    .set({ token_sha256: tokenSha256 })
    .where('id', '=', invitationId)
    .where('sent_at', 'is', null)
    .where('accepted_at', 'is', null)
    .where('revoked_at', 'is', null)
    .where('expires_at', '>', NOW)
    .returning('id')
    .executeTakeFirst();
  if (given === undefined) return undefined;
  return await trx
    .selectFrom('invitation')
    .innerJoin('org', 'org.id', 'invitation.org_id')
    .leftJoin('user', 'user.id', 'invitation.invited_by')
    .select([
      'invitation.email',
      'invitation.role',
      'invitation.expires_at',
      'org.name as org_name',
      'user.name as inviter_name',
    ])
    .where('invitation.id', '=', invitationId)
    .executeTakeFirstOrThrow();
}

/** Records the mail with the token as sent; undefined if already recorded or token replaced. */
export async function markSent(
  trx: DatabaseTransaction,
  invitationId: string,
  tokenSha256: Buffer,
): Promise<InvitationRow | undefined> {
  return await trx
    .updateTable('invitation')
    .set({ sent_at: NOW })
    .where('id', '=', invitationId)
    .where('token_sha256', '=', tokenSha256)
    .where('sent_at', 'is', null)
    .returningAll()
    .executeTakeFirst();
}

function selectWithStatus(db: Database): SelectQueryBuilder<Tables, 'invitation', InvitationWithStatus> {
  return db.selectFrom('invitation').selectAll('invitation').select(STATUS.as('status'));
}
