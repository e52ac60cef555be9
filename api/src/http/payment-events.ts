// Webhook path of the payment provider. Bodies stay raw: the signature covers their bytes.
import type { FastifyInstance } from 'fastify';
import { requirePayments } from '../services/billing/billing.ts';
import type { ServiceContext } from '../services/context/context.ts';
import type { EntryPoint } from './entry-point.ts';
import { claimPaymentEvent } from '../services/billing/paid-subscriptions.ts';

const PATH = '/billing/stripe';
/** Far above the size of Stripe's subscription and checkout events. */
const BODY_BYTES = 256 * 1024;

/**
 * Responds with 2xx once the event is processed; after any other status the provider resends it.
 */
export function paymentEvents(context: ServiceContext): EntryPoint {
  const path = async (scope: FastifyInstance): Promise<void> => {
    scope.removeAllContentTypeParsers();
    scope.addContentTypeParser<Buffer>('*', { parseAs: 'buffer' }, (_request, body, done) => done(null, body));
    scope.route({
      method: 'POST',
      url: PATH,
      bodyLimit: BODY_BYTES,
      handler: async (request) => {
        const provider = requirePayments(context);
        const signature = request.headers['stripe-signature'];
        const body = Buffer.isBuffer(request.body) ? request.body : Buffer.alloc(0);
        await claimPaymentEvent(
          context,
          provider,
          provider.readEvent(body, typeof signature === 'string' ? signature : undefined),
        );
        return { received: true };
      },
    });
    await Promise.resolve();
  };
  return { register: (app) => void app.register(path) };
}
