// Keeps an org's subscription in step with the payment provider's. An event only triggers a fetch
// of the subscription from the provider. Late, duplicate or reordered events thus lead to the same
// result.
//
// Requests to the provider run outside transactions. A response counts only if no other was applied
// since the request, else the request is repeated: an older response never wins.
import type { Plans } from '../../rules/billing/plan-catalogue.ts';
import { changeOf, type PaidSubscription } from '../../rules/billing/subscription-change.ts';
import { insertActivity } from '../../store/activity/activity.ts';
import { hasPaymentEvent, recordPaymentEvent } from '../../store/billing/payment-events.ts';
import type { DatabaseTransaction, SubscriptionRow } from '../../store/database/schema.ts';
import {
  findOrgOfPaid,
  findSubscription,
  lockSubscription,
  writePaidSubscription,
} from '../../store/billing/subscriptions.ts';
import { CodedError } from '../../rules/coded-error.ts';
import type { ServiceContext } from '../context/context.ts';
import type { PaymentEvent, PaymentProvider } from '../context/payment-port.ts';

type PaidContext = Pick<ServiceContext, 'db' | 'plans' | 'log'>;
type SubscriptionSource = { orgId: string; id: string; event: { id: string; kind: string } | null };

const SYSTEM = { kind: 'system', id: null, userId: null } as const;
/** Events of one purchase arrive together, at most a handful. */
const MOST_TRIES = 8;

/** Processes an event once. Throws if the provider should redeliver it. */
export async function claimPaymentEvent(
  context: PaidContext,
  provider: PaymentProvider,
  event: PaymentEvent,
): Promise<void> {
  const { id, kind, subscription } = event;
  if (subscription === null || (await hasPaymentEvent(context.db, id))) return;
  const orgId = (await findOrgOfPaid(context.db, subscription.id)) ?? subscription.orgId;
  if (orgId === null) {
    context.log.info(
      { kind, subscription: subscription.id },
      'the payment provider reported a subscription without an org',
    );
    return;
  }
  await followPaidSubscription(context, provider, { orgId, id: subscription.id, event: { id, kind } });
}

/** Fetches the subscription's state from the provider and applies it, with its activity rows. */
export async function followPaidSubscription(
  context: PaidContext,
  provider: PaymentProvider,
  toFollow: SubscriptionSource,
): Promise<void> {
  for (let tries = 0; tries < MOST_TRIES; tries += 1) {
    const before = await findSubscription(context.db, toFollow.orgId);
    if (before === undefined) {
      context.log.error(toFollow, 'the payment provider reported a subscription of an unknown org');
      return;
    }
    const paid = await provider.findSubscription(toFollow.id);
    if (
      await context.db.transaction().execute((trx) => adoptPaid(context, trx, toFollow, before.provider_revision, paid))
    )
      return;
  }
  throw new CodedError('payment_provider_unavailable', `the subscription ${toFollow.id} changes too fast`, {
    retryAfterSeconds: 1,
  });
}

/** Returns false if the fetched state is stale. */
async function adoptPaid(
  { plans, log }: PaidContext,
  trx: DatabaseTransaction,
  { orgId, id, event }: SubscriptionSource,
  revision: number,
  paid: PaidSubscription,
): Promise<boolean> {
  const row = await lockSubscription(trx, orgId);
  if (row === undefined) throw new Error(`the subscription of the org ${orgId} no longer exists`);
  if (row.provider_revision !== revision) return false;
  if (event !== null && !(await recordPaymentEvent(trx, event))) return true;
  const recorded = {
    plan: row.plan,
    status: row.status,
    startedAt: row.started_at,
    paidId: row.provider_subscription_id,
  };
  const change = changeOf(recorded, paid, (priceId) => planOfPrice(plans, priceId));
  if (change.kind === 'ignore') {
    log.warn({ orgId, subscription: id, why: change.why }, 'ignored a subscription of the payment provider');
    return true;
  }
  if (change.kind === 'unknown_price') {
    // The provider redelivers it; the operator can add the price to the catalogue meanwhile.
    throw new Error(
      `${orgId} pays for ${paid.priceIds.join(', ')}: no plan of the catalogue (BERTH_PLANS_FILE) has this priceId`,
    );
  }
  if (change.instead !== null) {
    log.error(
      { orgId, follows: id, pays: change.instead },
      'an org pays for two subscriptions: cancel the older one at the payment provider',
    );
  }
  await writePaidSubscription(trx, orgId, {
    plan: change.plan,
    status: change.status,
    startedAt: paid.createdAt,
    periodAnchor: paid.periodAnchor,
    canceledAt: paid.canceledAt,
    cancelsAt: paid.cancelsAt,
    customerId: paid.customerId,
    subscriptionId: paid.id,
  });
  await recordChange(trx, row);
  return true;
}

/** Adds activity rows for the differences; none without a difference. */
async function recordChange(trx: DatabaseTransaction, before: SubscriptionRow): Promise<void> {
  const orgId = before.org_id;
  const after = await findSubscription(trx, orgId);
  if (after === undefined)
    throw new Error(`the subscription of the org ${orgId} is missing in the transaction that wrote it`);
  if (after.plan !== before.plan) {
    const from = { plan: before.plan, status: before.status };
    await insertActivity(trx, { orgId, actor: SYSTEM, kind: 'plan_changed', details: { from, to: after.plan } });
  }
  const [from, to] = [billingFields(before), billingFields(after)];
  if (JSON.stringify(from) === JSON.stringify(to)) return;
  await insertActivity(trx, { orgId, actor: SYSTEM, kind: 'subscription_changed', details: { from, to } });
}

function billingFields(row: SubscriptionRow): Record<string, string | null> {
  return {
    status: row.status,
    provider: row.provider_subscription_id === null ? null : 'stripe',
    startedAt: row.started_at.toISOString(),
    periodAnchor: row.period_anchor.toISOString(),
    cancelsAt: row.cancels_at?.toISOString() ?? null,
  };
}

function planOfPrice(plans: Plans, priceId: string): string | undefined {
  return [...plans.values()].find((plan) => plan.priceId === priceId)?.id;
}
