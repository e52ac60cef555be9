// The rows of subscriptions: which plan an org has. SQL only; what plans allow is said in the catalogue.
import { statusesThat } from '@berth/contract/sandbox-state.ts';
import { sql } from 'kysely';
import type { Database, DatabaseTransaction, SubscriptionRow } from './schema.ts';

/** Gives a new org a plan that is in force from now on. */
export async function insertSubscription(db: Database, subscription: { orgId: string; plan: string }): Promise<void> {
  await db.insertInto('subscription').values({ org_id: subscription.orgId, plan: subscription.plan, status: 'active' }).execute();
}

/** Gives an org another plan, in force from now on, or the one it has again. */
export async function writeSubscription(trx: DatabaseTransaction, subscription: { orgId: string; plan: string }): Promise<void> {
  const changed = { plan: subscription.plan, status: 'active' as const, started_at: sql<Date>`now()` };
  await trx
    .insertInto('subscription')
    .values({ org_id: subscription.orgId, ...changed })
    .onConflict((conflict) => conflict.column('org_id').doUpdateSet(changed))
    .execute();
}

export async function findSubscription(db: Database, orgId: string): Promise<SubscriptionRow | undefined> {
  return await db.selectFrom('subscription').selectAll().where('org_id', '=', orgId).executeTakeFirst();
}

/** The row, locked until the transaction ends: whatever counts against the org's plan is counted by one transaction after another. */
export async function lockSubscription(trx: DatabaseTransaction, orgId: string): Promise<SubscriptionRow | undefined> {
  return await trx.selectFrom('subscription').selectAll().where('org_id', '=', orgId).forNoKeyUpdate().executeTakeFirst();
}

/** How many of the org's sandboxes count against its concurrent ones. */
export async function countConcurrent(db: Database, orgId: string): Promise<number> {
  const row = await db
    .selectFrom('sandbox')
    .select(sql<number>`count(*)::int`.as('count'))
    .where('org_id', '=', orgId)
    // Says to the planner that the index over living sandboxes will do.
    .where('status', '<>', 'deleted')
    .where('status', 'in', statusesThat('concurrent'))
    .executeTakeFirstOrThrow();
  return row.count;
}
