// Counts for limits of users and orgs, and the locks that make them exact. SQL only.
import type { SubscriptionStatus } from '@berth/contract/billing/billing.ts';
import { sql } from 'kysely';
import type { DatabaseTransaction } from '../database/schema.ts';

/** Numbers of orgs that the user created, whoever owns them now, by plan and its status. */
export async function countCreatedOrgs(
  trx: DatabaseTransaction,
  userId: string,
): Promise<{ plan: string | null; status: SubscriptionStatus | null; count: number }[]> {
  return await trx
    .selectFrom('org')
    .leftJoin('subscription', 'subscription.org_id', 'org.id')
    .select(['subscription.plan', 'subscription.status', sql<number>`count(*)::int`.as('count')])
    .where('org.created_by', '=', userId)
    .groupBy(['subscription.plan', 'subscription.status'])
    .execute();
}

/**
 * Serialises creates of the org's projects and keys, and changes of its memberships, until commit.
 * Inserts that refer to the org go on.
 */
export async function lockOrg(trx: DatabaseTransaction, orgId: string): Promise<void> {
  await trx.selectFrom('org').select('id').where('id', '=', orgId).forNoKeyUpdate().execute();
}

export async function countProjects(trx: DatabaseTransaction, orgId: string): Promise<number> {
  const { count } = await trx
    .selectFrom('project')
    .select(sql<number>`count(*)::int`.as('count'))
    .where('org_id', '=', orgId)
    .where('deleted_at', 'is', null)
    .executeTakeFirstOrThrow();
  return count;
}

/** Number of the org's keys that are neither revoked nor expired. */
export async function countUsableKeys(trx: DatabaseTransaction, orgId: string): Promise<number> {
  const { count } = await trx
    .selectFrom('api_key')
    .select(sql<number>`count(*)::int`.as('count'))
    .where('org_id', '=', orgId)
    .where('revoked_at', 'is', null)
    .where(sql<boolean>`(expires_at is null or expires_at > now())`)
    .executeTakeFirstOrThrow();
  return count;
}
