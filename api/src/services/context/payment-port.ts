// Services' interface to a payment provider. Types only; src/payment implements it and alone knows
// the provider.
import type { PaidSubscription } from '../../rules/billing/subscription-change.ts';

export interface NewCheckout {
  orgId: string;
  customerId: string;
  priceId: string;
  /** URL to which the provider returns the browser. */
  boughtUrl: string;
  leftUrl: string;
}

export interface OpenCheckout {
  id: string;
  url: string;
  expiresAt: Date;
}

/** A hint to fetch details from the provider: events come late, twice and out of order. */
export interface PaymentEvent {
  id: string;
  kind: string;
  /** The affected subscription; null: irrelevant event. */
  subscription: { id: string; orgId: string | null } | null;
}

/** Every call has a timeout, and throws `payment_provider_unavailable` on failure. */
export interface PaymentProvider {
  /** Creates the org's customer. Idempotent per org for a day. */
  createCustomer(customer: { orgId: string; name: string }): Promise<string>;
  openCheckout(checkout: NewCheckout): Promise<OpenCheckout>;
  /** Closes the checkout. If it was already completed, returns the purchased subscription. */
  closeCheckout(checkoutId: string): Promise<{ subscriptionId: string | null }>;
  /** A page on which to change a subscription to another price. */
  openChange(change: {
    customerId: string;
    subscriptionId: string;
    priceId: string;
    returnUrl: string;
  }): Promise<{ url: string }>;
  /** Current state of the subscription. */
  findSubscription(subscriptionId: string): Promise<PaidSubscription>;
  /** Throws `signature_invalid` unless the provider signed the body recently. */
  readEvent(body: Buffer, signature: string | undefined): PaymentEvent;
}
