// The change of an org's subscription after a report of the payment provider. Pure. An org has a
// single subscription, which follows the provider's most recent subscription for that org; reports
// about others change nothing.
import type { SubscriptionStatus } from '@berth/contract/billing/billing.ts';

/** A subscription in its current state at the provider. */
export interface PaidSubscription {
  id: string;
  customerId: string;
  /** Prices of all items of the subscription. */
  priceIds: readonly string[];
  /** `pending`: the first payment is outstanding. */
  status: SubscriptionStatus | 'pending';
  createdAt: Date;
  /** Anchor of its periods; may lie in the future. */
  periodAnchor: Date;
  /** Time of the cancellation, if the provider reports it. */
  canceledAt: Date | null;
  /** Time of a scheduled cancellation, if any. */
  cancelsAt: Date | null;
}

/** The org's recorded subscription. */
export interface RecordedSubscription {
  plan: string;
  status: SubscriptionStatus;
  startedAt: Date;
  /** null: the operator granted the plan without payment. */
  paidId: string | null;
}

type SubscriptionChange =
  | { kind: 'ignore'; why: string }
  /**
   * `instead`: another active subscription of the provider, which is no longer followed. The
   * customer pays twice.
   */
  | { kind: 'follow'; plan: string; status: SubscriptionStatus; instead: string | null }
  /** No plan of the catalogue has this price. */
  | { kind: 'unknown_price' };

/** `planOf` maps a price to the id of its plan. */
export function changeOf(
  recorded: RecordedSubscription,
  paid: PaidSubscription,
  planOf: (priceId: string) => string | undefined,
): SubscriptionChange {
  if (paid.status === 'pending') return { kind: 'ignore', why: 'its first payment is outstanding' };
  const another =
    recorded.paidId !== null && recorded.paidId !== paid.id && recorded.status !== 'canceled' ? recorded.paidId : null;
  if (recorded.paidId !== paid.id) {
    if (paid.status === 'canceled')
      return { kind: 'ignore', why: "it is canceled and is not the org's current subscription" };
    if (another !== null && !isNewer(paid, { id: another, createdAt: recorded.startedAt }))
      return { kind: 'ignore', why: `the org has a newer subscription, ${another}: the customer pays twice` };
  }
  const plan = paid.priceIds.map(planOf).find((id) => id !== undefined);
  if (plan !== undefined) return { kind: 'follow', plan, status: paid.status, instead: another };
  // Cancelling the followed subscription requires no plan.
  if (paid.status === 'canceled') return { kind: 'follow', plan: recorded.plan, status: 'canceled', instead: null };
  return { kind: 'unknown_price' };
}

type Made = Pick<PaidSubscription, 'id' | 'createdAt'>;

/**
 * Compares creation times. Within one second the greater id counts as newer, so that the order of
 * reports does not change the outcome.
 */
function isNewer(one: Made, other: Made): boolean {
  const apart = one.createdAt.getTime() - other.createdAt.getTime();
  return apart > 0 || (apart === 0 && one.id > other.id);
}
