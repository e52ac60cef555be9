// Subscriptions and checkouts against a loopback Stripe server, called through Stripe's SDK. For
// its events see payment-events.test.ts.
import assert from 'node:assert/strict';
import { after, afterEach, before, test } from 'node:test';
import { role } from '@berth/contract/route/permissions.ts';
import { SELF_HOSTED_PLAN, type Plan } from '@berth/contract/billing/plans.ts';
import { changePlan } from '../../../src/services/billing/plan-change.ts';
import { requirePeriod } from '../../../src/services/billing/period.ts';
import { signInAs, type Answer, type TestApi, type TestOrg } from '../../world/api.ts';
import type { StripeServer } from '../../payment/stripe-server.ts';
import { startStripeWorld, type StripeWorld } from '../../payment/stripe-world.ts';

const PRO: Plan = {
  ...SELF_HOSTED_PLAN,
  id: 'pro',
  name: 'Pro',
  includedMachineHours: 500,
  overageUsdPerMachineHour: 0.2,
  priceId: 'price_pro',
};
const TEAM: Plan = {
  ...SELF_HOSTED_PLAN,
  id: 'team',
  name: 'Team',
  includedMachineHours: 5_000,
  priceId: 'price_team',
};
const GIVEN: Plan = { ...SELF_HOSTED_PLAN, id: 'given', name: 'Given' };

let world: StripeWorld;
let stripe: StripeServer;
let api: TestApi;
before(async () => {
  world = await startStripeWorld([PRO, TEAM, GIVEN]);
  ({ stripe, api } = world);
});
afterEach(() => {
  stripe.instead = undefined;
});
after(async () => {
  await world.stop();
});

interface Buyer extends TestOrg {
  session: string;
}

/** Creates an org with a signed-in owner. */
async function makeBuyer(): Promise<Buyer> {
  const org = await api.makeOrg();
  return { ...org, session: (await signInAs(api.db, org.userId)).token };
}

const checkout = ({ orgId, session }: Buyer, plan: string): Promise<Answer> =>
  api.call('POST', `/v1/orgs/${orgId}/billing/checkout`, { token: session, body: { plan } });
const subscription = async ({ orgId, token }: TestOrg): Promise<Answer> =>
  await api.call('GET', `/v1/orgs/${orgId}/subscription`, { token });

async function feed(orgId: string): Promise<{ kind: string; actor_kind: string; details: Record<string, unknown> }[]> {
  return await api.db
    .selectFrom('activity')
    .select(['kind', 'actor_kind', 'details'])
    .where('org_id', '=', orgId)
    .where('kind', 'in', ['checkout_started', 'plan_changed', 'subscription_changed'])
    .orderBy('seq')
    .execute();
}

test('every member reads plan, status and the month-long period that begins with the org', async () => {
  const { created_at: createdAt } = await api.db
    .selectFrom('org')
    .select('created_at')
    .where('id', '=', api.orgId)
    .executeTakeFirstOrThrow();
  for (const name of role.options) {
    const { token } = await api.makeSession({ role: name });
    const { status, body } = await api.call('GET', `/v1/orgs/${api.orgId}/subscription`, { token });
    assert.equal(status, 200, name);
    const { periodEndsAt, plan, ...rest } = body.subscription;
    const { priceId: _, ...shown } = SELF_HOSTED_PLAN;
    assert.deepEqual(plan, shown);
    assert.deepEqual(rest, {
      status: 'active',
      startedAt: createdAt.toISOString(),
      periodStartsAt: createdAt.toISOString(),
      canceledAt: null,
      cancelsAt: null,
      sandboxMachineHourLimit: null,
      sandboxOverageEnabled: false,
      provider: null,
    });
    const days = (Date.parse(periodEndsAt) - createdAt.getTime()) / 86_400_000;
    assert.ok(Number.isInteger(days) && days >= 28 && days <= 31);
  }
});

test('periods are months from the anchor, and the first begins with the subscription', async () => {
  const org = await api.makeOrg();
  const set = (startedAt: string, anchor: string): Promise<unknown> =>
    api.db
      .updateTable('subscription')
      .set({ started_at: new Date(startedAt), period_anchor: new Date(anchor) })
      .where('org_id', '=', org.orgId)
      .execute();
  const bounds = async (at: string): Promise<string[]> => {
    const { startsAt, endsAt } = await requirePeriod(api.db, api.context.plans, org.orgId, new Date(at));
    return [startsAt.toISOString(), endsAt.toISOString()];
  };
  await set('2026-01-31T10:00:00Z', '2026-01-31T10:00:00Z');
  assert.deepEqual(await bounds('2026-02-28T10:00:00Z'), ['2026-02-28T10:00:00.000Z', '2026-03-31T10:00:00.000Z']);
  assert.deepEqual(
    await bounds('2026-01-31T09:59:59Z'),
    ['2026-01-31T10:00:00.000Z', '2026-02-28T10:00:00.000Z'],
    'a clock that is behind',
  );
  // Trial: the paid period begins later.
  await set('2026-01-10T00:00:00Z', '2026-01-24T00:00:00Z');
  assert.deepEqual(await bounds('2026-01-12T00:00:00Z'), ['2026-01-10T00:00:00.000Z', '2026-01-24T00:00:00.000Z']);
  assert.deepEqual(await bounds('2026-01-24T00:00:00Z'), ['2026-01-24T00:00:00.000Z', '2026-02-24T00:00:00.000Z']);
});

test('an ended subscription has no period and is not an active plan', async () => {
  const org = await api.makeOrg();
  const canceledAt = new Date('2026-03-01T00:00:00Z');
  await api.db
    .updateTable('subscription')
    .set({ status: 'canceled', canceled_at: canceledAt })
    .where('org_id', '=', org.orgId)
    .execute();
  const { body } = await subscription(org);
  assert.deepEqual(
    [
      body.subscription.status,
      body.subscription.canceledAt,
      body.subscription.periodStartsAt,
      body.subscription.periodEndsAt,
    ],
    ['canceled', canceledAt.toISOString(), null, null],
  );
  await assert.rejects(requirePeriod(api.db, api.context.plans, org.orgId, new Date()), { code: 'no_active_plan' });
});

for (const [what, arrange] of [
  ['no subscription', (orgId: string) => api.db.deleteFrom('subscription').where('org_id', '=', orgId).execute()],
  [
    'a plan that the catalogue does not know',
    (orgId: string) => api.db.updateTable('subscription').set({ plan: 'gone' }).where('org_id', '=', orgId).execute(),
  ],
] as const) {
  test(`an org with ${what} gets 402 no_active_plan, also for its period`, async () => {
    const org = await api.makeOrg();
    await arrange(org.orgId);
    const { status, body } = await subscription(org);
    assert.deepEqual([status, body.error.code], [402, 'no_active_plan']);
    await assert.rejects(requirePeriod(api.db, api.context.plans, org.orgId, new Date()), { code: 'no_active_plan' });
  });
}

test('a checkout without a provider is 402 billing_not_configured naming the variables to set', async () => {
  const payments = api.context.payments;
  api.context.payments = null;
  try {
    const { status, body } = await checkout(await makeBuyer(), 'pro');
    assert.deepEqual([status, body.error.code], [402, 'billing_not_configured']);
    assert.match(body.error.message, /BERTH_STRIPE_SECRET_KEY_FILE and BERTH_STRIPE_WEBHOOK_SECRET_FILE/);
  } finally {
    api.context.payments = payments;
  }
});

test('the plans for sale are those with a price, without its id; none without a provider', async () => {
  const { orgId, token } = await api.makeOrg();
  const offered = async (): Promise<object[]> =>
    (await api.call('GET', `/v1/orgs/${orgId}/plans`, { token })).body.plans;
  const { priceId: _, ...pro } = PRO;
  const plans = await offered();
  assert.deepEqual(
    plans.find((plan) => 'id' in plan && plan.id === 'pro'),
    pro,
  );
  assert.deepEqual(new Set(plans.map((plan) => 'id' in plan && plan.id)), new Set(['pro', 'sold', 'team']));
  const payments = api.context.payments;
  api.context.payments = null;
  try {
    assert.deepEqual(await offered(), []);
  } finally {
    api.context.payments = payments;
  }
});

test('an unknown or unpriced plan is 400 plan_not_for_sale and lists the plans for sale', async () => {
  const buyer = await makeBuyer();
  for (const plan of ['nope', 'given', 'self-hosted']) {
    const { status, body } = await checkout(buyer, plan);
    assert.deepEqual([status, body.error.code], [400, 'plan_not_for_sale']);
    assert.match(body.error.message, new RegExp(`body\\.plan: ${plan} .*: sold, pro, team$`));
  }
});

test("a checkout returns the provider's page for org, customer and price, and adds a feed row", async () => {
  const buyer = await makeBuyer();
  const { status, body } = await checkout(buyer, 'pro');
  assert.equal(status, 200);
  assert.match(body.checkout.url, /^https:\/\/checkout\.example\.test\//);
  const left = Date.parse(body.checkout.expiresAt) - Date.now();
  assert.ok(left > 1_800_000 && left <= 3_600_000, String(left));
  const [made] = stripe.requests.filter(({ path }) => path === '/v1/checkout/sessions').slice(-1);
  const row = await api.db
    .selectFrom('subscription')
    .selectAll()
    .where('org_id', '=', buyer.orgId)
    .executeTakeFirstOrThrow();
  assert.deepEqual(
    [
      'mode',
      'client_reference_id',
      'customer',
      'line_items[0][price]',
      'line_items[0][quantity]',
      'success_url',
      'cancel_url',
    ].map((name) => made?.form[name]),
    [
      'subscription',
      buyer.orgId,
      row.provider_customer_id,
      'price_pro',
      '1',
      'http://berth.example.test/billing/return?state=bought',
      'http://berth.example.test/billing/return?state=left',
    ],
  );
  assert.deepEqual(await feed(buyer.orgId), [
    { kind: 'checkout_started', actor_kind: 'session', details: { plan: 'pro' } },
  ]);
  assert.equal((await subscription(buyer)).body.subscription.plan.id, 'self-hosted', 'nothing is bought yet');
});

test("a new checkout expires the previous one and keeps the org's customer", async () => {
  const buyer = await makeBuyer();
  const first = (await checkout(buyer, 'pro')).body.checkout.url;
  const second = (await checkout(buyer, 'team')).body.checkout.url;
  assert.throws(() => stripe.pay(first), /cannot be used/);
  assert.equal(stripe.pay(second).items.data[0]?.price.id, 'price_team');
  const customers = stripe.requests.filter(
    ({ path, form }) => path === '/v1/customers' && form['metadata[berth_org_id]'] === buyer.orgId,
  );
  assert.equal(customers.length, 1);
});

test('exactly one of two concurrent checkouts stays usable', async () => {
  const buyer = await makeBuyer();
  const answers = await Promise.all([checkout(buyer, 'pro'), checkout(buyer, 'team')]);
  assert.deepEqual(
    answers.map(({ status }) => status),
    [200, 200],
  );
  const usable = answers.filter(({ body }) => {
    try {
      return stripe.pay(body.checkout.url) !== undefined;
    } catch {
      return false;
    }
  });
  assert.equal(usable.length, 1);
});

test("a payer who returns before the provider's event does not pay twice", async () => {
  const buyer = await makeBuyer();
  const bought = stripe.pay((await checkout(buyer, 'pro')).body.checkout.url);
  const again = await checkout(buyer, 'pro');
  assert.deepEqual([again.status, again.body.error.code], [409, 'plan_already_bought']);
  const { body } = await subscription(buyer);
  assert.deepEqual([body.subscription.plan.id, body.subscription.provider], ['pro', 'stripe']);
  assert.equal(body.subscription.startedAt, new Date(bought.created * 1_000).toISOString());
});

test("a plan change of a paying org uses the provider's subscription page", async () => {
  const buyer = await makeBuyer();
  const bought = stripe.pay((await checkout(buyer, 'pro')).body.checkout.url);
  const { status, body } = await checkout(buyer, 'team');
  assert.equal(status, 200);
  assert.match(body.checkout.url, /^https:\/\/billing\.example\.test\//);
  assert.equal(body.checkout.expiresAt, null);
  const asked = stripe.requests.findLast(({ path }) => path === '/v1/billing_portal/sessions')?.form;
  assert.equal(asked?.['flow_data[subscription_update_confirm][subscription]'], bought.id);
  assert.equal(asked?.['flow_data[subscription_update_confirm][items][0][price]'], 'price_team');
  assert.equal(asked?.['return_url'], 'http://berth.example.test/billing/return?state=bought');
});

test('a failing provider is 503 with Retry-After, and the next checkout works', async () => {
  const buyer = await makeBuyer();
  for (const failure of [
    'hang up',
    { status: 500, body: { error: { type: 'api_error', message: 'down' } } },
  ] as const) {
    stripe.instead = () => failure;
    const { status, headers, body } = await checkout(buyer, 'pro');
    assert.deepEqual([status, body.error.code], [503, 'payment_provider_unavailable']);
    assert.ok(Number(headers.get('retry-after')) > 0);
  }
  stripe.instead = undefined;
  assert.deepEqual(await feed(buyer.orgId), []);
  assert.equal((await checkout(buyer, 'pro')).status, 200);
});

test('a provider refusal is logged and not in the response', async () => {
  const buyer = await makeBuyer();
  stripe.instead = ({ path }) =>
    path === '/v1/checkout/sessions'
      ? {
          status: 400,
          body: {
            error: { type: 'invalid_request_error', code: 'resource_missing', message: "No such price: 'price_pro'" },
          },
        }
      : undefined;
  const { status, body } = await checkout(buyer, 'pro');
  assert.equal(status, 503);
  assert.doesNotMatch(body.error.message, /price_pro/);
  assert.match(api.logged(), /resource_missing.*No such price: 'price_pro'/);
});

test('an operator cannot assign a plan to an org until its paid subscription ends', async () => {
  const buyer = await makeBuyer();
  stripe.pay((await checkout(buyer, 'pro')).body.checkout.url);
  await checkout(buyer, 'pro');
  const give = (): Promise<unknown> => changePlan(api.db, api.context.plans, { orgId: buyer.orgId, plan: 'given' });
  await assert.rejects(give(), /pays for its plan with the subscription sub_/);
  await api.db.updateTable('subscription').set({ status: 'canceled' }).where('org_id', '=', buyer.orgId).execute();
  await give();
  const { body } = await subscription(buyer);
  assert.deepEqual(
    [body.subscription.plan.id, body.subscription.status, body.subscription.provider],
    ['given', 'active', null],
  );
});

test("an operator's plan keeps running periods and restarts ended ones", async () => {
  const org = await api.makeOrg();
  const begun = new Date('2026-01-15T08:30:00.250Z');
  await api.db
    .updateTable('subscription')
    .set({ started_at: begun, period_anchor: begun })
    .where('org_id', '=', org.orgId)
    .execute();
  await changePlan(api.db, api.context.plans, { orgId: org.orgId, plan: 'given' });
  assert.equal((await subscription(org)).body.subscription.startedAt, begun.toISOString());
  await api.db.updateTable('subscription').set({ status: 'canceled' }).where('org_id', '=', org.orgId).execute();
  await changePlan(api.db, api.context.plans, { orgId: org.orgId, plan: 'given' });
  const { startedAt, periodStartsAt, status } = (await subscription(org)).body.subscription;
  assert.ok(Date.parse(startedAt) > begun.getTime());
  assert.deepEqual([status, periodStartsAt], ['active', startedAt]);
});

test('the return page distinguishes a purchase from none, without sign-in', async () => {
  for (const [state, title] of [
    ['bought', 'Back from the payment page'],
    ['left', 'Nothing was bought'],
  ] as const) {
    const answer = await fetch(`${api.url}/billing/return?state=${state}`);
    assert.equal(answer.status, 200);
    assert.match(await answer.text(), new RegExp(`<h1>${title}</h1>`));
  }
});
