// Control plane that sells plans through stripe-server.ts, called through Stripe's SDK.
import type { Plan } from '@berth/contract/billing/plans.ts';
import { openStripe } from '../../src/payment/stripe.ts';
import { startApi, type TestApi } from '../world/api.ts';
import { StripeServer } from './stripe-server.ts';

export interface StripeWorld {
  stripe: StripeServer;
  api: TestApi;
  stop(): Promise<void>;
}

export async function startStripeWorld(plans: Plan[]): Promise<StripeWorld> {
  const stripe = new StripeServer();
  await stripe.start();
  const payments = openStripe({ secretKey: stripe.secretKey, webhookSecret: stripe.webhookSecret, apiUrl: stripe.url });
  try {
    const api = await startApi({ durable: false, plans, payments });
    api.secret(stripe.secretKey, "Stripe's secret key");
    api.secret(stripe.webhookSecret, "Stripe's webhook secret");
    return {
      stripe,
      api,
      stop: async () => {
        await api.close();
        await stripe.stop();
      },
    };
  } catch (error) {
    await stripe.stop();
    throw error;
  }
}
