// The billing period that an org is in. Whatever sums its machine time asks here for the bounds.
import type { Plan } from '@berth/contract/billing/plans.ts';
import { periodAt, type BillingPeriod } from '../../rules/billing/period.ts';
import type { Plans } from '../../rules/billing/plan-catalogue.ts';
import type { Database, SubscriptionRow } from '../../store/database/schema.ts';
import { findSubscription } from '../../store/billing/subscriptions.ts';
import { inForce } from './plans.ts';

export interface CurrentPeriod extends BillingPeriod {
  subscription: SubscriptionRow;
  plan: Plan;
}

/**
 * The period of the org's subscription in which `at` lies. Throws `no_active_plan` when there is
 * none.
 */
export async function requirePeriod(db: Database, plans: Plans, orgId: string, at: Date): Promise<CurrentPeriod> {
  return periodOf(plans, await findSubscription(db, orgId), at);
}

/** As {@link requirePeriod}, of a row that was read already, or locked. */
export function periodOf(plans: Plans, subscription: SubscriptionRow | undefined, at: Date): CurrentPeriod {
  const current = inForce(plans, subscription);
  return { ...current, ...periodOfSubscription(current.subscription, at) };
}

/**
 * The period's bounds. The first one begins with the subscription, wherever its anchor lies; a
 * clock that is behind is in the first.
 */
export function periodOfSubscription(
  { started_at: startedAt, period_anchor: anchor }: SubscriptionRow,
  at: Date,
): BillingPeriod {
  const { startsAt, endsAt } = periodAt(anchor, at < startedAt ? startedAt : at);
  return { startsAt: startsAt < startedAt ? startedAt : startsAt, endsAt };
}
