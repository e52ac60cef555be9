// An org's current billing period, the bounds for every sum of its machine time.
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

/** The period of the org's subscription that contains `at`. Throws `no_active_plan`. */
export async function requirePeriod(db: Database, plans: Plans, orgId: string, at: Date): Promise<CurrentPeriod> {
  return periodOf(plans, await findSubscription(db, orgId), at);
}

/** As {@link requirePeriod}, for a row already read or locked. */
function periodOf(plans: Plans, subscription: SubscriptionRow | undefined, at: Date): CurrentPeriod {
  const current = inForce(plans, subscription);
  return { ...current, ...periodOfSubscription(current.subscription, at) };
}

/**
 * Bounds of the period. The first period starts with the subscription, wherever its anchor is; an
 * earlier instant counts to the first.
 */
export function periodOfSubscription(
  { started_at: startedAt, period_anchor: anchor }: SubscriptionRow,
  at: Date,
): BillingPeriod {
  const { startsAt, endsAt } = periodAt(anchor, at < startedAt ? startedAt : at);
  return { startsAt: startsAt < startedAt ? startedAt : startsAt, endsAt };
}
