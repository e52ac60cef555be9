// What services need of a payment provider. Types only; src/payment implements it, and nothing else
// knows whose API it is.
import type { PaidSubscription } from '../../rules/billing/subscription-change.ts';

export interface NewCheckout {
  orgId: string;
  customerId: string;
  priceId: string;
  /** Where the provider leads back to. */
  boughtUrl: string;
  leftUrl: string;
}

export interface OpenCheckout {
  id: string;
  url: string;
  expiresAt: Date;
}

/**
 * Something happened at the provider; what exactly is asked of it, as events come late, twice and
 * out of order.
 */
export interface PaymentEvent {
  id: string;
  kind: string;
  /** The subscription that it is about; null: it is about nothing that matters here. */
  subscription: { id: string; orgId: string | null } | null;
}

/**
 * Every call is bounded in time and throws `payment_provider_unavailable` when the provider does
 * not answer, or refuses.
 */
export interface PaymentProvider {
  /** The org's customer. Asked twice for the same org within a day, it is the same one. */
  createCustomer(customer: { orgId: string; name: string }): Promise<string>;
  openCheckout(checkout: NewCheckout): Promise<OpenCheckout>;
  /**
   * Makes the checkout unusable, unless it has been gone through: then the subscription that was
   * bought is told.
   */
  closeCheckout(checkoutId: string): Promise<{ subscriptionId: string | null }>;
  /** A page on which a subscription is changed to another price. */
  openChange(change: {
    customerId: string;
    subscriptionId: string;
    priceId: string;
    returnUrl: string;
  }): Promise<{ url: string }>;
  /** As it is at this moment. */
  findSubscription(subscriptionId: string): Promise<PaidSubscription>;
  /** Throws `signature_invalid` unless the provider itself made the body, and lately. */
  readEvent(body: Buffer, signature: string | undefined): PaymentEvent;
}
