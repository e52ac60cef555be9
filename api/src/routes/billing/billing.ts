// Wire format of subscriptions and checkouts.
import { createCheckout, getSubscription, listPlans, type Subscription } from '@berth/contract/billing/billing.ts';
import type { Plan } from '@berth/contract/billing/plans.ts';
import * as billing from '../../services/billing/billing.ts';
import { bind } from '../../call/bind.ts';

export const billingRoutes = [
  bind(getSubscription, async (context, { params }) => ({
    subscription: viewSubscription(await billing.getSubscription(context, params.orgId)),
  })),
  bind(listPlans, (context) => Promise.resolve({ plans: billing.plansForSale(context).map(viewPlan) })),
  bind(createCheckout, async (context, { actor, params, body }) => {
    const { url, expiresAt } = await billing.createCheckout(context, actor, params.orgId, body.plan);
    return { checkout: { url, expiresAt: expiresAt?.toISOString() ?? null } };
  }),
];

function viewPlan(plan: Plan): Omit<Plan, 'priceId'> {
  const { priceId: _, ...shown } = plan;
  return shown;
}

function viewSubscription({ row, plan, period }: billing.SubscriptionState): Subscription {
  return {
    plan: viewPlan(plan),
    status: row.status,
    startedAt: row.started_at.toISOString(),
    periodStartsAt: period?.startsAt.toISOString() ?? null,
    periodEndsAt: period?.endsAt.toISOString() ?? null,
    canceledAt: row.canceled_at?.toISOString() ?? null,
    cancelsAt: row.cancels_at?.toISOString() ?? null,
    sandboxMachineHourLimit: row.machine_hour_limit,
    sandboxOverageEnabled: row.overage_enabled,
    provider: row.provider_subscription_id === null ? null : 'stripe',
  };
}
