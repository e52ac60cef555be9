// Stripe as the payment provider, through its SDK. Converts shapes and failures only; services
// define what a payment means for an org. SDK errors hold whole responses and never leave this
// file.
import type { SubscriptionStatus } from '@berth/contract/billing/billing.ts';
import { Stripe } from 'stripe';
import { CodedError } from '../rules/coded-error.ts';
import type { PaidSubscription } from '../rules/billing/subscription-change.ts';
import type { NewCheckout, OpenCheckout, PaymentEvent, PaymentProvider } from '../services/context/payment-port.ts';

export interface StripeOptions {
  secretKey: string;
  /** Signing secret of the webhook endpoint. */
  webhookSecret: string;
  /** Replaces Stripe's address. */
  apiUrl: string | null;
}

/** Timeout of one request. Stripe itself waits about 20 s for the response to an event. */
const TIMEOUT_MS = 8_000;
/** Maximum age of a signature, against replays. */
const TOLERANCE_SECONDS = 300;
/** Lifetime of a checkout page. An older page might show a former price. */
const CHECKOUT_MINUTES = 60;
const RETRY_AFTER_SECONDS = 10;
/** Metadata key on everything created for an org. */
const ORG = 'berth_org_id';

/** Connects with the first request. */
export function openStripe({ secretKey, webhookSecret, apiUrl }: StripeOptions): PaymentProvider {
  const stripe = new Stripe(secretKey, {
    timeout: TIMEOUT_MS,
    maxNetworkRetries: 1,
    telemetry: false,
    ...addressOf(apiUrl),
  });
  return {
    createCustomer: async ({ orgId, name }) => {
      const parameters = { name, metadata: { [ORG]: orgId } };
      const { id } = await asked(stripe.customers.create(parameters, { idempotencyKey: `berth-customer-${orgId}` }));
      return id;
    },
    openCheckout: async (checkout) => await openCheckout(stripe, checkout),
    closeCheckout: async (id) => await closeCheckout(stripe, id),
    openChange: async ({ customerId, subscriptionId, priceId, returnUrl }) => {
      const { items } = await asked(stripe.subscriptions.retrieve(subscriptionId));
      const [item] = items.data;
      if (item === undefined) throw new Error(`the subscription ${subscriptionId} has no items`);
      const confirmed = { type: 'redirect' as const, redirect: { return_url: returnUrl } };
      const { url } = await asked(
        stripe.billingPortal.sessions.create({
          customer: customerId,
          return_url: returnUrl,
          flow_data: {
            type: 'subscription_update_confirm',
            subscription_update_confirm: {
              subscription: subscriptionId,
              items: [{ id: item.id, price: priceId, quantity: 1 }],
            },
            after_completion: confirmed,
          },
        }),
      );
      return { url };
    },
    findSubscription: async (id) => paidSubscription(await asked(stripe.subscriptions.retrieve(id))),
    readEvent: (body, signature) => readEvent(stripe, webhookSecret, body, signature),
  };
}

function addressOf(apiUrl: string | null): { host?: string; port?: string; protocol?: 'http' | 'https' } {
  if (apiUrl === null) return {};
  const { hostname, port, protocol } = new URL(apiUrl);
  const secure = protocol === 'https:';
  return { host: hostname, port: port || (secure ? '443' : '80'), protocol: secure ? 'https' : 'http' };
}

async function openCheckout(
  stripe: Stripe,
  { orgId, customerId, priceId, boughtUrl, leftUrl }: NewCheckout,
): Promise<OpenCheckout> {
  const session = await asked(
    stripe.checkout.sessions.create({
      mode: 'subscription',
      customer: customerId,
      client_reference_id: orgId,
      line_items: [{ price: priceId, quantity: 1 }],
      subscription_data: { metadata: { [ORG]: orgId } },
      success_url: boughtUrl,
      cancel_url: leftUrl,
      expires_at: Math.floor(Date.now() / 1_000) + CHECKOUT_MINUTES * 60,
    }),
  );
  if (session.url === null) throw new Error(`the checkout ${session.id} has no URL`);
  return { id: session.id, url: session.url, expiresAt: fromSeconds(session.expires_at) };
}

async function closeCheckout(stripe: Stripe, id: string): Promise<{ subscriptionId: string | null }> {
  let session: Stripe.Checkout.Session;
  try {
    session = await stripe.checkout.sessions.retrieve(id);
  } catch (error) {
    // Created with another Stripe account, or in test mode.
    if (error instanceof Stripe.errors.StripeError && error.code === 'resource_missing')
      return { subscriptionId: null };
    throw unavailable(error);
  }
  if (session.status === 'open') {
    try {
      session = await stripe.checkout.sessions.expire(id);
    } catch (error) {
      // A payment may have completed concurrently.
      session = await asked(stripe.checkout.sessions.retrieve(id));
      if (session.status === 'open') throw unavailable(error);
    }
  }
  return { subscriptionId: session.status === 'complete' ? idOf(session.subscription) : null };
}

function readEvent(stripe: Stripe, secret: string, body: Buffer, signature: string | undefined): PaymentEvent {
  let event: Stripe.Event;
  try {
    event = stripe.webhooks.constructEvent(body, signature ?? '', secret, TOLERANCE_SECONDS);
  } catch {
    // The precise reason would help an attacker.
    throw new CodedError(
      'signature_invalid',
      'the header Stripe-Signature does not match the body, or is older than five minutes',
    );
  }
  return { id: event.id, kind: event.type, subscription: subscriptionIn(event) };
}

/** New event types appear; the types below carry the subscription in its data. */
function subscriptionIn({ type, data }: Stripe.Event): PaymentEvent['subscription'] {
  if (type.startsWith('customer.subscription.')) {
    const { id, metadata } = data.object as Stripe.Subscription;
    return { id, orgId: metadata?.[ORG] ?? null };
  }
  if (type === 'checkout.session.completed' || type === 'checkout.session.async_payment_succeeded') {
    const { subscription, client_reference_id: orgId } = data.object;
    const id = idOf(subscription);
    return id === null ? null : { id, orgId };
  }
  return null;
}

function paidSubscription(found: Stripe.Subscription): PaidSubscription {
  const customerId = idOf(found.customer);
  if (customerId === null) throw new Error(`the subscription ${found.id} has no customer`);
  const over = found.ended_at ?? found.canceled_at;
  return {
    id: found.id,
    customerId,
    priceIds: found.items.data.map(({ price }) => price.id),
    status: statusOf(found),
    createdAt: fromSeconds(found.created),
    periodAnchor: fromSeconds(found.billing_cycle_anchor),
    canceledAt: over === null ? null : fromSeconds(over),
    cancelsAt: found.cancel_at === null ? null : fromSeconds(found.cancel_at),
  };
}

function statusOf({ id, status }: Stripe.Subscription): SubscriptionStatus | 'pending' {
  switch (status) {
    case 'active':
    case 'trialing':
      return 'active';
    case 'past_due':
      return 'past_due';
    case 'incomplete':
      return 'pending';
    // Stripe stopped collecting, temporarily or permanently.
    case 'unpaid':
    case 'paused':
    case 'canceled':
    case 'incomplete_expired':
      return 'canceled';
    default:
      throw new Error(`the subscription ${id} has the unknown status ${status}`);
  }
}

function idOf(named: string | { id: string } | null): string | null {
  return typeof named === 'string' ? named : (named?.id ?? null);
}

function fromSeconds(seconds: number): Date {
  return new Date(seconds * 1_000);
}

async function asked<T>(answer: Promise<T>): Promise<T> {
  try {
    return await answer;
  } catch (error) {
    throw unavailable(error);
  }
}

/** Builds a log-safe error: an SDK error carries headers and the whole response. */
function unavailable(error: unknown): unknown {
  if (!(error instanceof Stripe.errors.StripeError)) return error;
  const { type, code, statusCode, requestId, message } = error;
  const refused =
    statusCode !== undefined && statusCode >= 400 && statusCode < 500 && statusCode !== 409 && statusCode !== 429;
  const cause = new Error(
    `Stripe: ${type}${code === undefined ? '' : ` (${code})`}, ${statusCode ?? 'no response'}, ` +
      `${requestId ?? 'no id'}: ${message}`,
  );
  return new CodedError(
    'payment_provider_unavailable',
    refused
      ? "the payment provider rejected the request; nothing was bought. The operator's log has the reason"
      : 'the payment provider did not respond; nothing was bought. Try again',
    { retryAfterSeconds: RETRY_AFTER_SECONDS, cause },
  );
}
