// An org's subscription, and checkouts for plans. paid-subscriptions.ts applies the payment
// provider's later reports.
import type { Plan } from '@berth/contract/billing/plans.ts';
import type { Actor } from '../../rules/access/access.ts';
import type { BillingPeriod } from '../../rules/billing/period.ts';
import { CodedError } from '../../rules/coded-error.ts';
import type { Plans } from '../../rules/billing/plan-catalogue.ts';
import { describePlan } from '../../rules/billing/plan-limits.ts';
import { insertActivity } from '../../store/activity/activity.ts';
import { readClock } from '../../store/database/clock.ts';
import { findOrg } from '../../store/people/identity.ts';
import type { SubscriptionRow } from '../../store/database/schema.ts';
import { findSubscription, saveCustomer, replaceCheckout } from '../../store/billing/subscriptions.ts';
import { periodOfSubscription } from './period.ts';
import type { ServiceContext } from '../context/context.ts';
import { followPaidSubscription } from './paid-subscriptions.ts';
import type { PaymentProvider } from '../context/payment-port.ts';
import { namedPlan } from './plans.ts';

/** Page to which the payment provider returns the browser (pages/billing-return.ts). */
export const RETURN_PATH = '/billing/return';
const RETRY_AFTER_SECONDS = 5;
/** Attempts, because several people of an org may check out concurrently. */
const MOST_TRIES = 3;

export interface SubscriptionState {
  row: SubscriptionRow;
  plan: Plan;
  /** null: the subscription ended. */
  period: BillingPeriod | null;
}

/** Throws `no_active_plan` if there is no subscription. */
export async function getSubscription(context: ServiceContext, orgId: string): Promise<SubscriptionState> {
  const { subscription: row, plan } = namedPlan(context.plans, await findSubscription(context.db, orgId));
  return {
    row,
    plan,
    period: row.status === 'canceled' ? null : periodOfSubscription(row, await readClock(context.db)),
  };
}

/** Plans with a price; none without a payment provider. */
export function plansForSale({ payments, plans }: Pick<ServiceContext, 'payments' | 'plans'>): Plan[] {
  return payments === null ? [] : [...plans.values()].filter(({ priceId }) => priceId !== null);
}

/** Throws `billing_not_configured` without a provider. */
export function requirePayments({ payments }: Pick<ServiceContext, 'payments'>): PaymentProvider {
  if (payments !== null) return payments;
  throw new CodedError(
    'billing_not_configured',
    'this installation collects no payments; ' +
      'its operator must set BERTH_STRIPE_SECRET_KEY_FILE and BERTH_STRIPE_WEBHOOK_SECRET_FILE',
  );
}

/**
 * Opens a provider page on which to buy the plan, or to change the org's existing paid subscription
 * to it. An org has one such page at a time: earlier ones can no longer be paid.
 */
export async function createCheckout(
  context: ServiceContext,
  actor: Actor,
  orgId: string,
  planId: string,
): Promise<{ url: string; expiresAt: Date | null }> {
  const provider = requirePayments(context);
  const { plan, priceId } = planForSale(context.plans, planId);
  const returnUrl = (state: 'bought' | 'left'): string => `${context.settings.publicUrl}${RETURN_PATH}?state=${state}`;

  for (let tries = 0; tries < MOST_TRIES; tries += 1) {
    const row = await settled(context, provider, orgId);
    const {
      provider_subscription_id: subscriptionId,
      provider_customer_id: customer,
      provider_checkout_id: before,
    } = row;
    if (subscriptionId !== null && customer !== null && row.status !== 'canceled') {
      if (row.plan === plan.id)
        throw new CodedError('plan_already_bought', `this org already pays for ${describePlan(plan)}`);
      const { url } = await provider.openChange({
        customerId: customer,
        subscriptionId,
        priceId,
        returnUrl: returnUrl('bought'),
      });
      await insertActivity(context.db, { orgId, actor, kind: 'checkout_started', details: { plan: plan.id } });
      return { url, expiresAt: null };
    }
    const customerId = customer ?? (await makeCustomer(context, provider, orgId));
    const urls = { boughtUrl: returnUrl('bought'), leftUrl: returnUrl('left') };
    const opened = await provider.openCheckout({ orgId, customerId, priceId, ...urls });
    const kept = await context.db.transaction().execute(async (trx) => {
      if (!(await replaceCheckout(trx, orgId, { before, now: opened.id }))) return false;
      await insertActivity(trx, { orgId, actor, kind: 'checkout_started', details: { plan: plan.id } });
      return true;
    });
    if (kept) return opened;
    await provider.closeCheckout(opened.id);
  }
  throw new CodedError('payment_provider_unavailable', 'another member of this org is starting a purchase; retry', {
    retryAfterSeconds: RETRY_AFTER_SECONDS,
  });
}

/** The org's subscription, after its last checkout was closed or its purchase applied. */
async function settled(context: ServiceContext, provider: PaymentProvider, orgId: string): Promise<SubscriptionRow> {
  const row = await requireRow(context, orgId);
  if (row.provider_checkout_id === null) return row;
  const { subscriptionId } = await provider.closeCheckout(row.provider_checkout_id);
  if (subscriptionId === null || subscriptionId === row.provider_subscription_id) return row;
  await followPaidSubscription(context, provider, { orgId, id: subscriptionId, event: null });
  return await requireRow(context, orgId);
}

async function requireRow({ db }: ServiceContext, orgId: string): Promise<SubscriptionRow> {
  const row = await findSubscription(db, orgId);
  if (row !== undefined) return row;
  throw new CodedError('no_active_plan', 'this org has no plan; the operator of this installation can assign one');
}

async function makeCustomer({ db }: ServiceContext, provider: PaymentProvider, orgId: string): Promise<string> {
  const org = await findOrg(db, orgId);
  if (org === undefined) throw new Error(`the org ${orgId} no longer exists`);
  return await saveCustomer(db, orgId, await provider.createCustomer({ orgId, name: org.name }));
}

function planForSale(plans: Plans, planId: string): { plan: Plan; priceId: string } {
  const plan = plans.get(planId);
  if (plan !== undefined && plan.priceId !== null) return { plan, priceId: plan.priceId };
  const sold = [...plans.values()].filter(({ priceId }) => priceId !== null).map(({ id }) => id);
  const why =
    sold.length === 0
      ? 'no plan has a price (its operator must add a priceId to the catalogue)'
      : `available: ${sold.join(', ')}`;
  throw new CodedError('plan_not_for_sale', `body.plan: ${planId} cannot be bought here; ${why}`);
}
