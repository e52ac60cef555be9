// What an org pays for: its subscription to a plan, and the way to the payment provider.
import { z } from 'zod';
import { plan } from './plans.ts';
import { defineRoute } from '../route/route.ts';
import { idText, timestamp } from '../route/text.ts';

export const subscriptionStatus = z.enum(['active', 'past_due', 'canceled']).meta({
  id: 'SubscriptionStatus',
  description:
    '`active`: the plan is in force. `past_due`: a payment did not work and the provider tries again; the plan stays in force until it gives up. `canceled`: it is over.',
});
export type SubscriptionStatus = z.infer<typeof subscriptionStatus>;

/** Who collects the money. */
export const paymentProvider = z.enum(['stripe']);

export const subscription = z
  .strictObject({
    plan: plan.omit({ priceId: true }),
    status: subscriptionStatus,
    startedAt: timestamp,
    periodStartsAt: timestamp.nullable().describe('The billing period now; null when the subscription is over.'),
    periodEndsAt: timestamp.nullable(),
    canceledAt: timestamp.nullable().describe('Since when it is over.'),
    cancelsAt: timestamp.nullable().describe('When it will be over, if that is known ahead.'),
    sandboxMachineHourLimit: z
      .number()
      .nonnegative()
      .nullable()
      .describe("As the org's admins set it; null: none of their own. What follows from it stands in the usage."),
    sandboxOverageEnabled: z.boolean(),
    provider: paymentProvider.nullable().describe('null: nobody collects anything for it.'),
  })
  .meta({ id: 'Subscription', description: "The org's plan and its billing period." });
export type Subscription = z.infer<typeof subscription>;

export const checkout = z.strictObject({
  /** A page of the payment provider, to be opened by the person who pays. */
  url: z.url({ protocol: /^https?$/ }),
  /** Until when the page can be used; null where the provider does not say. */
  expiresAt: timestamp.nullable(),
});
export type Checkout = z.infer<typeof checkout>;

const orgParams = z.object({ orgId: idText });

export const getSubscription = defineRoute({
  name: 'getSubscription',
  summary: "The org's plan, its status and the billing period",
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

export const createCheckout = defineRoute({
  name: 'createCheckout',
  summary: 'Begins the purchase of a plan at the payment provider; the plan is in force once that says that it is paid',
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
