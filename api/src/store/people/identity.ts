// Rows of users, orgs and memberships. SQL only.
import type { Role } from '@berth/contract/route/permissions.ts';
import { sql } from 'kysely';
import type { Database, OrgRow, UserRow } from '../database/schema.ts';

export async function insertUser(db: Database, user: { id: string; name: string; email: string }): Promise<void> {
  await db
    .insertInto('user')
    .values({ ...user, emailVerified: false, image: null })
    .execute();
}

export async function insertOrg(
  db: Database,
  { id, name, createdBy, isOperator = false }: { id: string; name: string; createdBy?: string; isOperator?: boolean },
): Promise<void> {
  await db
    .insertInto('org')
    .values({ id, name, created_by: createdBy ?? null, is_operator: isOperator })
    .execute();
}

export async function insertMembership(
  db: Database,
  membership: { orgId: string; userId: string; role: Role },
): Promise<void> {
  await db
    .insertInto('membership')
    .values({ org_id: membership.orgId, user_id: membership.userId, role: membership.role })
    .execute();
}

export async function renameOrg(db: Database, orgId: string, name: string): Promise<void> {
  await db.updateTable('org').set({ name }).where('id', '=', orgId).execute();
}

export async function findUser(db: Database, userId: string): Promise<UserRow | undefined> {
  return await db.selectFrom('user').selectAll().where('id', '=', userId).executeTakeFirst();
}

export async function findOrg(db: Database, orgId: string): Promise<OrgRow | undefined> {
  return await db.selectFrom('org').selectAll().where('id', '=', orgId).executeTakeFirst();
}

/** A user's role in an org; undefined if not a member. */
export async function findRole(db: Database, orgId: string, userId: string): Promise<Role | undefined> {
  const row = await db
    .selectFrom('membership')
    .select('role')
    .where('org_id', '=', orgId)
    .where('user_id', '=', userId)
    .executeTakeFirst();
  return row?.role;
}

type MemberOrgRow = OrgRow & { role: Role };

/** Orgs of a user, oldest membership first; with `onlyOrgId`, at most that org. */
export async function listOrgsOfUser(db: Database, userId: string, onlyOrgId: string | null): Promise<MemberOrgRow[]> {
  let query = db
    .selectFrom('membership')
    .innerJoin('org', 'org.id', 'membership.org_id')
    .selectAll('org')
    .select('membership.role')
    .where('membership.user_id', '=', userId);
  if (onlyOrgId !== null) query = query.where('org.id', '=', onlyOrgId);
  return await query.orderBy('membership.created_at').orderBy('org.id').execute();
}

/** The operator's org; undefined before the bootstrap. */
export async function findOperatorOrgId(db: Database): Promise<string | undefined> {
  const row = await db.selectFrom('org').select('id').where('is_operator', '=', true).executeTakeFirst();
  return row?.id;
}

/** The given org, or the operator's, and its first owner; undefined if either is missing. */
export async function findOwnedOrg(
  db: Database,
  orgId?: string,
): Promise<{ orgId: string; ownerId: string } | undefined> {
  let query = db
    .selectFrom('org')
    .innerJoin('membership', (join) =>
      join.onRef('membership.org_id', '=', 'org.id').on('membership.role', '=', 'owner'),
    )
    .select(['org.id as orgId', 'membership.user_id as ownerId']);
  query = orgId === undefined ? query.where('org.is_operator', '=', true) : query.where('org.id', '=', orgId);
  return await query.orderBy('membership.created_at').limit(1).executeTakeFirst();
}

/** Serialises concurrent first starts until commit. The number identifies this lock alone. */
export async function lockBootstrap(db: Database): Promise<void> {
  await sql`select pg_advisory_xact_lock(7234918200165001)`.execute(db);
}
