// Loopback server with the parts of Stripe's API that the service uses: forms in, JSON out,
// Stripe's errors, idempotency keys, signed events. The service calls it through Stripe's SDK; it
// shares no code with the service.
import assert from 'node:assert/strict';
import { createHmac, randomBytes } from 'node:crypto';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface StandInSubscription {
  id: string;
  object: 'subscription';
  customer: string;
  status: string;
  created: number;
  start_date: number;
  billing_cycle_anchor: number;
  cancel_at: number | null;
  canceled_at: number | null;
  ended_at: number | null;
  metadata: Record<string, string>;
  items: { object: 'list'; data: { id: string; price: { id: string }; quantity: number }[] };
}

interface Session {
  id: string;
  object: 'checkout.session';
  status: 'open' | 'complete' | 'expired';
  url: string | null;
  expires_at: number;
  customer: string;
  client_reference_id: string;
  subscription: string | null;
  given: Record<string, string>;
}

interface ReceivedRequest {
  method: string;
  path: string;
  form: Record<string, string>;
}

type Answer = { status: number; body: unknown };
const refusal = (status: number, code: string, message: string): Answer => ({
  status,
  body: { error: { type: 'invalid_request_error', code, message } },
});
const word = (prefix: string): string => `${prefix}_${randomBytes(12).toString('hex')}`;

export class StripeServer {
  readonly secretKey = word('sk_test').replace('sk_test_', 'sk_test_5');
  readonly webhookSecret = word('whsec');
  /** Requests received, without those refused for their API key. */
  readonly requests: ReceivedRequest[] = [];
  readonly subscriptions = new Map<string, StandInSubscription>();
  /** Handles every request while set; undefined falls back to the default. */
  instead:
    | ((received: ReceivedRequest) => Promise<Answer | 'hang up' | undefined> | Answer | 'hang up' | undefined)
    | undefined;
  readonly #sessions = new Map<string, Session>();
  readonly #customers = new Map<string, Record<string, string>>();
  readonly #once = new Map<string, Answer>();
  readonly #server: Server;
  #seconds = 1_790_000_000;

  constructor() {
    this.#server = createServer((request, response) => void this.#answer(request, response));
  }

  async start(): Promise<void> {
    await new Promise<void>((resolve) => this.#server.listen(0, '127.0.0.1', resolve));
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** Counts matching requests. */
  count(method: string, path: RegExp): number {
    return this.requests.filter((one) => one.method === method && path.test(one.path)).length;
  }

  /** Completes the checkout page; returns the new subscription. */
  pay(sessionUrl: string, changes: Partial<StandInSubscription> = {}): StandInSubscription {
    const session = [...this.#sessions.values()].find(({ url }) => url === sessionUrl);
    assert.equal(session?.status, 'open', 'the page of this checkout cannot be used');
    const made = this.subscribe({
      customer: session.customer,
      metadata: { berth_org_id: session.given['subscription_data[metadata][berth_org_id]'] ?? '' },
      price: session.given['line_items[0][price]'] ?? '',
      ...changes,
    });
    Object.assign(session, { status: 'complete', subscription: made.id, url: null });
    return made;
  }

  /** Adds a subscription without a checkout. */
  subscribe({ price = '', ...changes }: Partial<StandInSubscription> & { price?: string }): StandInSubscription {
    const created = (this.#seconds += 1);
    const made: StandInSubscription = {
      id: word('sub'),
      object: 'subscription',
      customer: word('cus'),
      status: 'active',
      created,
      start_date: created,
      billing_cycle_anchor: created,
      cancel_at: null,
      canceled_at: null,
      ended_at: null,
      metadata: {},
      items: { object: 'list', data: [{ id: word('si'), price: { id: price }, quantity: 1 }] },
      ...changes,
    };
    this.subscriptions.set(made.id, made);
    return made;
  }

  /** Completed checkout of the subscription as in an event. */
  sessionOf(subscriptionId: string): object {
    const session = [...this.#sessions.values()].find(({ subscription }) => subscription === subscriptionId);
    assert.ok(session !== undefined);
    const { given: _, ...told } = session;
    return told;
  }

  /** Builds a signed event: body and `Stripe-Signature` header. */
  event(
    type: string,
    object: object,
    { id = word('evt'), secret = this.webhookSecret, secondsAgo = 0 } = {},
  ): { body: string; signature: string } {
    const created = Math.floor(Date.now() / 1_000) - secondsAgo;
    const body = JSON.stringify(
      { id, object: 'event', api_version: '2025-01-01', created, type, data: { object }, livemode: false },
      null,
      2,
    );
    return {
      body,
      signature: `t=${created},v1=${createHmac('sha256', secret).update(`${created}.${body}`).digest('hex')}`,
    };
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const form = Object.fromEntries(new URLSearchParams(Buffer.concat(chunks).toString()));
    const received = { method: request.method ?? '', path: request.url ?? '', form };
    const key = request.headers['idempotency-key'];
    const answer = await this.#choose(
      request.headers.authorization,
      received,
      typeof key === 'string' ? key : undefined,
    );
    if (answer === 'hang up') {
      request.socket.destroy();
      return;
    }
    response.writeHead(answer.status, { 'content-type': 'application/json', 'request-id': word('req') });
    response.end(JSON.stringify(answer.body));
  }

  async #choose(
    authorization: string | undefined,
    received: ReceivedRequest,
    key: string | undefined,
  ): Promise<Answer | 'hang up'> {
    if (authorization !== `Bearer ${this.secretKey}`) {
      return {
        status: 401,
        body: { error: { type: 'invalid_request_error', message: 'Invalid API Key provided: sk_test_***' } },
      };
    }

    this.requests.push(received);
    const instead = await this.instead?.(received);
    if (instead !== undefined) return instead;
    const known = key === undefined ? undefined : this.#once.get(key);
    if (known !== undefined) return known;
    const answer = this.#do(received);
    if (key !== undefined) this.#once.set(key, answer);
    return answer;
  }

  #do({ method, path, form }: ReceivedRequest): Answer {
    const [, , kind = '', ...rest] = path.split('/');
    switch (`${method} ${kind}`) {
      case 'POST customers': {
        const id = word('cus');
        this.#customers.set(id, form);
        return { status: 200, body: { id, object: 'customer', name: form['name'] } };
      }
      case 'GET subscriptions': {
        const found = this.subscriptions.get(rest[0] ?? '');
        return found === undefined
          ? refusal(404, 'resource_missing', 'No such subscription')
          : { status: 200, body: found };
      }
      case 'POST billing_portal': {
        const subscription = this.subscriptions.get(form['flow_data[subscription_update_confirm][subscription]'] ?? '');
        const item = form['flow_data[subscription_update_confirm][items][0][id]'];
        if (
          subscription === undefined ||
          subscription.items.data[0]?.id !== item ||
          subscription.customer !== form['customer']
        )
          return refusal(400, 'resource_missing', 'No such item of a subscription of this customer');

        return {
          status: 200,
          body: { id: word('bps'), object: 'billing_portal.session', url: `https://billing.example.test/${word('p')}` },
        };
      }
      case 'GET checkout':
      case 'POST checkout':
        return this.#doCheckout(method, rest, form);
      default:
        return refusal(404, 'url_invalid', `Unrecognized request URL (${method}: ${path})`);
    }
  }

  #doCheckout(method: string, [, id, verb]: string[], given: Record<string, string>): Answer {
    if (method === 'POST' && id === undefined) {
      if (!this.#customers.has(given['customer'] ?? '')) return refusal(400, 'resource_missing', 'No such customer');
      const made: Session = {
        id: word('cs_test'),
        object: 'checkout.session',
        status: 'open',
        url: `https://checkout.example.test/c/pay/${word('p')}`,
        expires_at: Number(given['expires_at']),
        customer: given['customer'] ?? '',
        client_reference_id: given['client_reference_id'] ?? '',
        subscription: null,
        given,
      };
      this.#sessions.set(made.id, made);
      return { status: 200, body: made };
    }
    const session = this.#sessions.get(id ?? '');
    if (session === undefined) return refusal(404, 'resource_missing', 'No such checkout session');
    if (verb === 'expire') {
      if (session.status !== 'open')
        return refusal(400, 'session_not_open', 'Only Checkout Sessions with a status in ["open"] can be expired.');
      Object.assign(session, { status: 'expired', url: null });
    }
    return { status: 200, body: { ...session } };
  }
}
