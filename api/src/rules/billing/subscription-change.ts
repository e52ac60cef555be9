// What becomes of an org's subscription when the payment provider says how the one that it sold
// stands. Pure.
//
// An org has one subscription. It follows the one of the provider that it began last; what is told
// of others changes nothing.
import type { SubscriptionStatus } from '@berth/contract/billing/billing.ts';

/** A subscription as the provider has it now. */
export interface PaidSubscription {
  id: string;
  customerId: string;
  /** Of all that is bought with it. */
  priceIds: readonly string[];
  /** `pending`: the first payment has not come. */
  status: SubscriptionStatus | 'pending';
  createdAt: Date;
  /** Its periods are counted from here; may be ahead. */
  periodAnchor: Date;
  /** Since when it is over, where the provider says. */
  canceledAt: Date | null;
  /** When it will be over, if that is known ahead. */
  cancelsAt: Date | null;
}

/** The org's subscription as it is recorded. */
export interface RecordedSubscription {
  plan: string;
  status: SubscriptionStatus;
  startedAt: Date;
  /** null: the plan is the operator's gift. */
  paidId: string | null;
}

export type SubscriptionChange =
  | { kind: 'ignore'; why: string }
  /**
   * `instead`: a subscription of the provider that is in force too and is followed no more:
   * somebody pays twice.
   */
  | { kind: 'follow'; plan: string; status: SubscriptionStatus; instead: string | null }
  /** A price that no plan of the catalogue has. */
  | { kind: 'unknown_price' };

/** `planOf` gives the id of the plan that a price buys. */
export function changeOf(
  recorded: RecordedSubscription,
  paid: PaidSubscription,
  planOf: (priceId: string) => string | undefined,
): SubscriptionChange {
  if (paid.status === 'pending') return { kind: 'ignore', why: 'it is not paid yet' };
  const another =
    recorded.paidId !== null && recorded.paidId !== paid.id && recorded.status !== 'canceled' ? recorded.paidId : null;
  if (recorded.paidId !== paid.id) {
    if (paid.status === 'canceled') return { kind: 'ignore', why: 'it is over, and not the one that the org has' };
    if (another !== null && !isNewer(paid, { id: another, createdAt: recorded.startedAt }))
      return { kind: 'ignore', why: `the org has a newer one, ${another}: somebody pays twice` };
  }
  const plan = paid.priceIds.map(planOf).find((id) => id !== undefined);
  if (plan !== undefined) return { kind: 'follow', plan, status: paid.status, instead: another };
  // The end of what the org has needs no plan.
  if (paid.status === 'canceled') return { kind: 'follow', plan: recorded.plan, status: 'canceled', instead: null };
  return { kind: 'unknown_price' };
}

type Made = Pick<PaidSubscription, 'id' | 'createdAt'>;

/**
 * Of the same second, the later name counts as newer: whichever is told of first, the same one is
 * followed in the end.
 */
function isNewer(one: Made, other: Made): boolean {
  const apart = one.createdAt.getTime() - other.createdAt.getTime();
  return apart > 0 || (apart === 0 && one.id > other.id);
}
