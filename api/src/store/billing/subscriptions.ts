// Rows of subscriptions: the plan of each org. SQL only; the catalogue defines what plans allow.
import type { SubscriptionStatus } from '@berth/contract/billing/billing.ts';
import { statusesThat } from '@berth/contract/sandboxes/state.ts';
import { sql } from 'kysely';
import type { Database, DatabaseTransaction, SubscriptionRow } from '../database/schema.ts';

/** Gives a new org a plan, effective now. */
export async function insertSubscription(db: Database, subscription: { orgId: string; plan: string }): Promise<void> {
  await db
    .insertInto('subscription')
    .values({ org_id: subscription.orgId, plan: subscription.plan, status: 'active' })
    .execute();
}

/** Replaces or renews an org's plan, effective now. */
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
  // A plan in force keeps its periods when the plan changes: usage in the current period stays
  // counted.
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

/** State of the org's subscription as reported by the payment provider. */
interface PaidState {
  plan: string;
  status: SubscriptionStatus;
  startedAt: Date;
  periodAnchor: Date;
  canceledAt: Date | null;
  cancelsAt: Date | null;
  customerId: string;
  subscriptionId: string;
}

/** Stores the state. Provider responses requested before this are stale from now on. */
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

/** The org whose subscription follows this provider subscription. */
export async function findOrgOfPaid(db: Database, subscriptionId: string): Promise<string | undefined> {
  const row = await db
    .selectFrom('subscription')
    .select('org_id')
    .where('provider_subscription_id', '=', subscriptionId)
    .executeTakeFirst();
  return row?.org_id;
}

/**
 * Stores the org's customer at the payment provider unless one exists. Returns the stored customer.
 */
export async function saveCustomer(db: Database, orgId: string, customerId: string): Promise<string> {
  const row = await db
    .updateTable('subscription')
    .set({ provider_customer_id: sql<string>`coalesce(provider_customer_id, ${customerId})` })
    .where('org_id', '=', orgId)
    .returning('provider_customer_id')
    .executeTakeFirstOrThrow();
  return row.provider_customer_id ?? customerId;
}

/** Replaces the previous checkout; false, changing nothing, if another call did so first. */
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

/** Locks the row. Serialises transactions that count against the org's plan. */
export async function lockSubscription(trx: DatabaseTransaction, orgId: string): Promise<SubscriptionRow | undefined> {
  return await trx
    .selectFrom('subscription')
    .selectAll()
    .where('org_id', '=', orgId)
    .forNoKeyUpdate()
    .executeTakeFirst();
}

/** Number of the org's sandboxes that count as concurrent. */
export async function countConcurrent(db: Database, orgId: string): Promise<number> {
  const row = await db
    .selectFrom('sandbox')
    .select(sql<number>`count(*)::int`.as('count'))
    .where('org_id', '=', orgId)
    // Lets the planner use the partial index over living sandboxes.
    .where('status', '<>', 'deleted')
    .where('status', 'in', statusesThat('concurrent'))
    .executeTakeFirstOrThrow();
  return row.count;
}
