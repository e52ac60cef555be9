// The rows of subscriptions: which plan an org has. SQL only; what plans allow is said in the
// catalogue.
import type { SubscriptionStatus } from '@berth/contract/billing/billing.ts';
import { statusesThat } from '@berth/contract/sandboxes/state.ts';
import { sql } from 'kysely';
import type { Database, DatabaseTransaction, SubscriptionRow } from '../database/schema.ts';

/** Gives a new org a plan that is in force from now on. */
export async function insertSubscription(db: Database, subscription: { orgId: string; plan: string }): Promise<void> {
  await db
    .insertInto('subscription')
    .values({ org_id: subscription.orgId, plan: subscription.plan, status: 'active' })
    .execute();
}

/** Gives an org another plan, in force from now on, or the one it has again. */
export async function writeSubscription(
  trx: DatabaseTransaction,
  subscription: { orgId: string; plan: string },
): Promise<void> {
  const begun = sql<Date>`date_trunc('milliseconds', now())`;
  const given = {
    plan: subscription.plan,
    status: 'active' as const,
    canceled_at: null,
    cancels_at: null,
    provider_subscription_id: null,
  };
  // The periods of a plan that is in force go on, whatever the plan: what was used of this one
  // stays used.
  const unlessInForce = (column: 'started_at' | 'period_anchor'): ReturnType<typeof sql<Date>> =>
    sql<Date>`case when subscription.status = 'canceled' then ${begun} else ${sql.ref(`subscription.${column}`)} end`;
  await trx
    .insertInto('subscription')
    .values({ org_id: subscription.orgId, ...given })
    .onConflict((conflict) =>
      conflict.column('org_id').doUpdateSet({
        ...given,
        started_at: unlessInForce('started_at'),
        period_anchor: unlessInForce('period_anchor'),
        provider_revision: sql<number>`subscription.provider_revision + 1`,
      }),
    )
    .execute();
}

/** What the payment provider said of the subscription that the org has there. */
export interface PaidState {
  plan: string;
  status: SubscriptionStatus;
  startedAt: Date;
  periodAnchor: Date;
  canceledAt: Date | null;
  cancelsAt: Date | null;
  customerId: string;
  subscriptionId: string;
}

/** Writes it down; what was asked of the provider before this is out of date from now on. */
export async function writePaidSubscription(trx: DatabaseTransaction, orgId: string, paid: PaidState): Promise<void> {
  await trx
    .updateTable('subscription')
    .set({
      plan: paid.plan,
      status: paid.status,
      started_at: paid.startedAt,
      period_anchor: paid.periodAnchor,
      canceled_at: paid.status === 'canceled' ? sql<Date>`coalesce(${paid.canceledAt}, canceled_at, now())` : null,
      cancels_at: paid.status === 'canceled' ? null : paid.cancelsAt,
      provider_customer_id: paid.customerId,
      provider_subscription_id: paid.subscriptionId,
      provider_revision: sql<number>`provider_revision + 1`,
    })
    .where('org_id', '=', orgId)
    .execute();
}

/** The org whose subscription follows this one of the payment provider. */
export async function findOrgOfPaid(db: Database, subscriptionId: string): Promise<string | undefined> {
  const row = await db
    .selectFrom('subscription')
    .select('org_id')
    .where('provider_subscription_id', '=', subscriptionId)
    .executeTakeFirst();
  return row?.org_id;
}

/**
 * Remembers the payment provider's customer of the org, unless there is one; gives the one that
 * there is.
 */
export async function keepCustomer(db: Database, orgId: string, customerId: string): Promise<string> {
  const row = await db
    .updateTable('subscription')
    .set({ provider_customer_id: sql<string>`coalesce(provider_customer_id, ${customerId})` })
    .where('org_id', '=', orgId)
    .returning('provider_customer_id')
    .executeTakeFirstOrThrow();
  return row.provider_customer_id ?? customerId;
}

/**
 * Puts a checkout in the place of the one before. False, and nothing done, when there is another by
 * now.
 */
export async function replaceCheckout(
  trx: DatabaseTransaction,
  orgId: string,
  checkout: { before: string | null; now: string },
): Promise<boolean> {
  const { numUpdatedRows } = await trx
    .updateTable('subscription')
    .set({ provider_checkout_id: checkout.now })
    .where('org_id', '=', orgId)
    .where('provider_checkout_id', 'is not distinct from', checkout.before)
    .executeTakeFirst();
  return numUpdatedRows === 1n;
}

export async function findSubscription(db: Database, orgId: string): Promise<SubscriptionRow | undefined> {
  return await db.selectFrom('subscription').selectAll().where('org_id', '=', orgId).executeTakeFirst();
}

/**
 * The row, locked until the transaction ends: whatever counts against the org's plan is counted by
 * one transaction after another.
 */
export async function lockSubscription(trx: DatabaseTransaction, orgId: string): Promise<SubscriptionRow | undefined> {
  return await trx
    .selectFrom('subscription')
    .selectAll()
    .where('org_id', '=', orgId)
    .forNoKeyUpdate()
    .executeTakeFirst();
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
