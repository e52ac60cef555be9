// Webhook path of the payment provider. Bodies stay raw: the signature covers their bytes.
import type { FastifyInstance } from 'fastify';
import type { BytesInFlight } from '../call/bytes-in-flight.ts';
import { CodedError } from '../rules/coded-error.ts';
import { requirePayments } from '../services/billing/billing.ts';
import type { ServiceContext } from '../services/context/context.ts';
import type { EntryPoint } from './entry-point.ts';
import { claimPaymentEvent } from '../services/billing/paid-subscriptions.ts';
import { parseBodies } from './requests/body.ts';

const PATH = '/billing/stripe';
/** Far above the size of Stripe's subscription and checkout events. */
const BODY_BYTES = 256 * 1024;

/**
 * Responds with 2xx once the event is processed; after any other status the provider resends it.
 * The body is read only with a provider and a signature: anybody can send one.
 */
export function paymentEvents(context: ServiceContext, inFlight: BytesInFlight): EntryPoint {
  const path = async (scope: FastifyInstance): Promise<void> => {
    scope.removeAllContentTypeParsers();
    parseBodies(scope, '*', inFlight, (_request, body) => Promise.resolve(body));
    scope.route({
      method: 'POST',
      url: PATH,
      bodyLimit: BODY_BYTES,
      onRequest: async ({ headers }) => {
        requirePayments(context);
        if ((headers['stripe-signature'] ?? '') === '')
          throw new CodedError('signature_invalid', 'the header Stripe-Signature is missing');
        await Promise.resolve();
      },
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
