// A payment provider without payments, for tests that only require one, and a plan that it sells.
// payment/stripe-server.ts stands in for Stripe.
import { randomUUID } from 'node:crypto';
import { SELF_HOSTED_PLAN, type Plan } from '@berth/contract/billing/plans.ts';
import { CodedError } from '../../src/rules/coded-error.ts';
import type { PaymentProvider } from '../../src/services/context/payment-port.ts';

export const SOLD_PLAN: Plan = { ...SELF_HOSTED_PLAN, id: 'sold', name: 'Sold', priceId: 'price_of_the_sold_plan' };

export const PAYMENTS_STAND_IN: PaymentProvider = {
  createCustomer: ({ orgId }) => Promise.resolve(`customer of ${orgId}`),
  openCheckout: () => {
    const id = randomUUID();
    return Promise.resolve({ id, url: `https://pay.example.test/${id}`, expiresAt: new Date(Date.now() + 3_600_000) });
  },
  closeCheckout: () => Promise.resolve({ subscriptionId: null }),
  openChange: () => Promise.reject(new Error('nobody pays here')),
  findSubscription: () => Promise.reject(new Error('nobody pays here')),
  readEvent: () => {
    throw new CodedError('signature_invalid', 'nobody signs anything here');
  },
};
