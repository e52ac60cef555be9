// Subscription of an org to a plan, and checkout at the payment provider.
import { z } from 'zod';
import { plan } from './plans.ts';
import { defineRoute } from '../route/route.ts';
import { idText, timestamp } from '../route/text.ts';

const subscriptionStatus = z.enum(['active', 'past_due', 'canceled']).meta({
  id: 'SubscriptionStatus',
  description:
    '`active`: the plan applies. `past_due`: a payment failed and the provider retries; the plan applies ' +
    'until the provider gives up. `canceled`: the subscription has ended.',
});
export type SubscriptionStatus = z.infer<typeof subscriptionStatus>;

/** The payment provider. */
const paymentProvider = z.enum(['stripe']);

const shownPlan = plan.omit({ priceId: true }).meta({
  id: 'SubscriptionPlan',
  description: 'Limits and prices of an org. null means no limit, unless a field says otherwise.',
});

const subscription = z
  .strictObject({
    plan: shownPlan,
    status: subscriptionStatus,
    startedAt: timestamp,
    periodStartsAt: timestamp
      .nullable()
      .describe('Start of the current billing period; null if the subscription has ended.'),
    periodEndsAt: timestamp.nullable(),
    canceledAt: timestamp.nullable().describe('Time at which the subscription ended.'),
    cancelsAt: timestamp.nullable().describe('Scheduled end of the subscription; null if none is scheduled.'),
    sandboxMachineHourLimit: z
      .number()
      .nonnegative()
      .nullable()
      .describe('The cap configured by org admins; null: none. The usage operation returns the effective cap.'),
    sandboxOverageEnabled: z.boolean(),
    provider: paymentProvider.nullable().describe('null: no payments are collected.'),
  })
  .meta({ id: 'Subscription', description: "The org's plan and its billing period." });
export type Subscription = z.infer<typeof subscription>;

const checkout = z.strictObject({
  /** Payment page of the provider, for the paying user. */
  url: z.url({ protocol: /^https?$/ }),
  /** Expiry of the page; null if the provider reports none. */
  expiresAt: timestamp.nullable(),
});

const orgParams = z.object({ orgId: idText });

export const getSubscription = defineRoute({
  name: 'getSubscription',
  summary: "Returns the org's plan, its status and the billing period",
  method: 'GET',
  path: '/v1/orgs/{orgId}/subscription',
  auth: ['session', 'api_key'],
  permission: 'org.read',
  request: { params: orgParams },
  response: { status: 200, body: z.strictObject({ subscription }) },
  errors: ['no_active_plan'],
  activity: null,
  published: false,
});

export const listPlans = defineRoute({
  name: 'listPlans',
  summary: 'Lists the plans that can be bought; none where no payments are collected',
  method: 'GET',
  path: '/v1/orgs/{orgId}/plans',
  auth: ['session', 'api_key'],
  permission: 'org.read',
  request: { params: orgParams },
  response: { status: 200, body: z.strictObject({ plans: z.array(shownPlan) }) },
  errors: [],
  activity: null,
  published: false,
});

export const createCheckout = defineRoute({
  name: 'createCheckout',
  summary:
    'Starts the purchase of a plan at the payment provider; the plan applies once the provider reports the payment',
  method: 'POST',
  path: '/v1/orgs/{orgId}/billing/checkout',
  auth: ['session'],
  permission: 'billing.manage',
  request: { params: orgParams, body: z.strictObject({ plan: plan.shape.id }) },
  response: { status: 200, body: z.strictObject({ checkout }) },
  errors: [
    'no_active_plan',
    'plan_not_for_sale',
    'billing_not_configured',
    'plan_already_bought',
    'payment_provider_unavailable',
  ],
  activity: 'checkout_started',
  published: false,
});
