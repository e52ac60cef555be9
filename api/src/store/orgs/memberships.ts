// Rows of memberships: the members of orgs and their roles. SQL only; people/identity.ts inserts
// them.
import type { Role } from '@berth/contract/route/permissions.ts';
import { sql, type SelectQueryBuilder } from 'kysely';
import type { PageRequest, Slice } from '../../rules/page.ts';
import { selectSlice } from '../database/pages.ts';
import type { Database, DatabaseTransaction, Tables } from '../database/schema.ts';
import { lockOrg } from './fair-shares.ts';

export interface MemberRow {
  user_id: string;
  email: string;
  name: string;
  role: Role;
  created_at: Date;
}

/**
 * Serialises changes of the org's memberships and invitations until the transaction ends. Read
 * after this to validate the change. Only creates of projects and keys wait for this lock too.
 */
export async function lockMemberships(trx: DatabaseTransaction, orgId: string): Promise<void> {
  await lockOrg(trx, orgId);
}

/** The org's members, oldest membership first. */
export async function listMembers(db: Database, orgId: string, page: PageRequest | null): Promise<Slice<MemberRow>> {
  return await selectSlice(
    selectMembers(db, orgId),
    { at: 'membership.created_at', tie: 'membership.user_id', direction: 'asc' },
    page,
  );
}

export async function findMember(db: Database, orgId: string, userId: string): Promise<MemberRow | undefined> {
  return await selectMembers(db, orgId).where('membership.user_id', '=', userId).executeTakeFirst();
}

/** True if the address (lower case) belongs to a member. */
export async function isMemberAddress(db: Database, orgId: string, email: string): Promise<boolean> {
  const found = await selectMembers(db, orgId)
    .where(sql<string>`lower("user"."email")`, '=', email)
    .executeTakeFirst();
  return found !== undefined;
}

export async function countOwners(db: Database, orgId: string): Promise<number> {
  const { count } = await db
    .selectFrom('membership')
    .select(sql<number>`count(*)::int`.as('count'))
    .where('org_id', '=', orgId)
    .where('role', '=', 'owner')
    .executeTakeFirstOrThrow();
  return count;
}

export async function updateRole(
  trx: DatabaseTransaction,
  membership: { orgId: string; userId: string; role: Role },
): Promise<void> {
  await trx
    .updateTable('membership')
    .set({ role: membership.role })
    .where('org_id', '=', membership.orgId)
    .where('user_id', '=', membership.userId)
    .execute();
}

export async function deleteMembership(trx: DatabaseTransaction, orgId: string, userId: string): Promise<void> {
  await trx.deleteFrom('membership').where('org_id', '=', orgId).where('user_id', '=', userId).execute();
}

function selectMembers(db: Database, orgId: string): SelectQueryBuilder<Tables, 'membership' | 'user', MemberRow> {
  return db
    .selectFrom('membership')
    .innerJoin('user', 'user.id', 'membership.user_id')
    .select(['membership.user_id', 'user.email', 'user.name', 'membership.role', 'membership.created_at'])
    .where('membership.org_id', '=', orgId);
}
