// Payment provider events: which are accepted, and that late, repeated, reordered, concurrent and
// failed deliveries end in the same state.
import assert from 'node:assert/strict';
import { after, afterEach, before, test } from 'node:test';
import { SELF_HOSTED_PLAN, type Plan } from '@berth/contract/billing/plans.ts';
import { sql } from 'kysely';
import { changePlan } from '../../src/services/billing/plan-change.ts';
import { signInAs, type TestApi, type TestOrg } from '../world/api.ts';
import type { StandInSubscription, StripeServer } from '../payment/stripe-server.ts';
import { startStripeWorld, type StripeWorld } from '../payment/stripe-world.ts';

const PRO: Plan = { ...SELF_HOSTED_PLAN, id: 'pro', name: 'Pro', priceId: 'price_pro' };
const TEAM: Plan = { ...SELF_HOSTED_PLAN, id: 'team', name: 'Team', priceId: 'price_team' };

let world: StripeWorld;
let stripe: StripeServer;
let api: TestApi;
before(async () => {
  world = await startStripeWorld([PRO, TEAM]);
  ({ stripe, api } = world);
});
afterEach(() => {
  stripe.instead = undefined;
});
after(async () => {
  await world.stop();
});

interface Sent {
  body: string;
  signature?: string;
}

async function send({
  body,
  signature,
}: Sent): Promise<{ status: number; answer: { received?: true; error?: { code: string } } }> {
  const headers = {
    'content-type': 'application/json; charset=utf-8',
    ...(signature === undefined ? {} : { 'stripe-signature': signature }),
  };
  const response = await fetch(`${api.url}/billing/stripe`, { method: 'POST', headers, body });
  return { status: response.status, answer: (await response.json()) as { received?: true; error?: { code: string } } };
}

async function deliver(sent: Sent): Promise<void> {
  assert.deepEqual(await send(sent), { status: 200, answer: { received: true } });
}

/** Org with a completed checkout and no event yet. */
async function buy(changes: Partial<StandInSubscription> = {}): Promise<{ org: TestOrg; bought: StandInSubscription }> {
  const org = await api.makeOrg();
  const { token } = await signInAs(api.db, org.userId);
  const { body } = await api.call('POST', `/v1/orgs/${org.orgId}/billing/checkout`, { token, body: { plan: 'pro' } });
  return { org, bought: stripe.pay(body.checkout.url, changes) };
}

/** Org whose purchase event was delivered. */
async function buyAndNotify(): Promise<{ org: TestOrg; bought: StandInSubscription }> {
  const made = await buy();
  await deliver(stripe.event('checkout.session.completed', stripe.sessionOf(made.bought.id)));
  return made;
}

const updated = (bought: StandInSubscription): Sent => stripe.event('customer.subscription.updated', { ...bought });

async function standing({ orgId, token }: TestOrg): Promise<Record<string, unknown>> {
  const { body } = await api.call('GET', `/v1/orgs/${orgId}/subscription`, { token });
  const { plan, status, provider } = body.subscription;
  return { plan: plan.id, status, provider };
}
const NOT_BOUGHT = { plan: 'self-hosted', status: 'active', provider: null };
const PRO_ACTIVE = { plan: 'pro', status: 'active', provider: 'stripe' };

async function changesIn(
  orgId: string,
): Promise<{ kind: string; details: Record<string, any> }[]> /* oxlint-disable-line typescript/no-explicit-any */ {
  const rows = await api.db
    .selectFrom('activity')
    .select(['kind', 'details', 'actor_kind', 'subject_id'])
    .where('org_id', '=', orgId)
    .where('kind', 'in', ['plan_changed', 'subscription_changed'])
    .orderBy('seq')
    .execute();
  for (const row of rows) assert.deepEqual([row.actor_kind, row.subject_id], ['system', orgId]);
  return rows.map(({ kind, details }) => ({ kind, details }));
}

async function countEvents(): Promise<number> {
  const { count } = await api.db
    .selectFrom('payment_event')
    .select(sql<number>`count(*)::int`.as('count'))
    .executeTakeFirstOrThrow();
  return count;
}

for (const type of ['checkout.session.completed', 'customer.subscription.created'] as const) {
  test(`the event ${type} activates the purchase with its period and is in the activity feed`, async () => {
    const { org, bought } = await buy();
    assert.deepEqual(await standing(org), NOT_BOUGHT);
    await deliver(stripe.event(type, type.startsWith('checkout') ? stripe.sessionOf(bought.id) : bought));
    assert.deepEqual(await standing(org), PRO_ACTIVE);
    const row = await api.db
      .selectFrom('subscription')
      .selectAll()
      .where('org_id', '=', org.orgId)
      .executeTakeFirstOrThrow();
    const at = new Date(bought.created * 1_000);
    assert.deepEqual([row.started_at, row.period_anchor, row.provider_subscription_id], [at, at, bought.id]);
    const [plan, subscription, ...more] = await changesIn(org.orgId);
    assert.deepEqual(plan, {
      kind: 'plan_changed',
      details: { from: { plan: 'self-hosted', status: 'active' }, to: 'pro' },
    });
    assert.equal(subscription?.kind, 'subscription_changed');
    assert.deepEqual([subscription.details['from'].provider, subscription.details['to'].provider], [null, 'stripe']);
    assert.deepEqual(more, []);
  });
}

test('an event with a missing, wrong, foreign or old signature is 400 signature_invalid', async () => {
  const { org, bought } = await buy();
  const good = updated(bought);
  const asked = stripe.requests.length;
  for (const bad of [
    { body: good.body },
    { body: good.body, signature: '' },
    { body: good.body, signature: 't=1,v1=00' },
    { body: `${good.body} `, signature: good.signature ?? '' },
    { body: good.body, signature: (good.signature ?? '').replace(/t=\d+/, `t=${Math.floor(Date.now() / 1_000) + 1}`) },
    stripe.event('customer.subscription.updated', bought, { secret: 'whsec_of_somebody_else' }),
    stripe.event('customer.subscription.updated', bought, { secondsAgo: 310 }),
  ]) {
    const { status, answer } = await send(bad);
    assert.deepEqual([status, answer.error?.code], [400, 'signature_invalid']);
  }
  assert.equal(stripe.requests.length, asked, 'nothing was asked for an event that is not believed');
  assert.deepEqual(await standing(org), NOT_BOUGHT);
  await deliver(good);
  assert.deepEqual(await standing(org), PRO_ACTIVE);
});

test('without a provider events are 402 billing_not_configured; an oversized body is 413', async () => {
  const { payments } = api.context;
  api.context.payments = null;
  try {
    assert.equal((await send(stripe.event('x', {}))).answer.error?.code, 'billing_not_configured');
  } finally {
    api.context.payments = payments;
  }
  assert.equal((await send({ body: 'x'.repeat(256 * 1024 + 1), signature: 't=1,v1=00' })).status, 413);
});

test('a repeated or concurrent event is processed once', async () => {
  const { org, bought } = await buy();
  const event = stripe.event('customer.subscription.created', bought);
  const before = await countEvents();
  await Promise.all(Array.from({ length: 8 }, () => deliver(event)));
  assert.equal(await countEvents(), before + 1);
  const asked = stripe.requests.length;
  await deliver(event);
  assert.equal(stripe.requests.length, asked, 'the provider was asked again');
  assert.equal((await changesIn(org.orgId)).length, 2);
});

test("events in the wrong order end in the provider's current state", async () => {
  const { org, bought } = await buy();
  const created = stripe.event('customer.subscription.created', { ...bought });
  bought.items.data[0] = { id: bought.items.data[0]?.id ?? '', price: { id: 'price_team' }, quantity: 1 };
  const changed = updated(bought);
  Object.assign(bought, { status: 'canceled', ended_at: bought.created + 60 });
  const deleted = stripe.event('customer.subscription.deleted', { ...bought });
  Object.assign(bought, { status: 'active', ended_at: null });
  await deliver(changed);
  assert.deepEqual(await standing(org), { ...PRO_ACTIVE, plan: 'team' });
  await deliver(deleted);
  await deliver(created);
  assert.deepEqual(await standing(org), { ...PRO_ACTIVE, plan: 'team' });
});

test('a provider response that is overtaken by a newer one is ignored', async () => {
  const { org, bought } = await buyAndNotify();
  let releaseHeld = (): void => undefined;
  const held = new Promise<void>((resolve) => (releaseHeld = resolve));
  let holding = (): void => undefined;
  const isHeld = new Promise<void>((resolve) => (holding = resolve));
  const old = { status: 200, body: structuredClone({ ...bought, status: 'past_due' }) };
  stripe.instead = async ({ path }) => {
    if (!path.startsWith('/v1/subscriptions/')) return undefined;
    stripe.instead = undefined;
    holding();
    await held;
    return old;
  };
  const slow = deliver(updated(bought));
  await isHeld;
  bought.cancel_at = bought.created + 1_000_000;
  await deliver(updated(bought));
  releaseHeld();
  await slow;
  assert.deepEqual(await standing(org), PRO_ACTIVE);
  const row = await api.db
    .selectFrom('subscription')
    .select('cancels_at')
    .where('org_id', '=', org.orgId)
    .executeTakeFirstOrThrow();
  assert.deepEqual(row.cancels_at, new Date((bought.created + 1_000_000) * 1_000));
});

test('past_due keeps the plan, unpaid or paused cancels it, and active restores it', async () => {
  const { org, bought } = await buyAndNotify();
  const create = async (): Promise<number> =>
    (
      await api.call('POST', `/v1/orgs/${org.orgId}/sandboxes`, {
        token: org.token,
        body: { agent: 'agent_one', projectId: org.projectId },
        headers: { prefer: 'respond-async' },
      })
    ).status;
  for (const [status, recorded, answered] of [
    ['past_due', 'past_due', 201],
    ['unpaid', 'canceled', 402],
    ['active', 'active', 201],
    ['paused', 'canceled', 402],
    ['trialing', 'active', 201],
    ['canceled', 'canceled', 402],
  ] as const) {
    bought.status = status;
    await deliver(updated(bought));
    assert.equal((await standing(org))['status'], recorded, status);
    assert.equal(await create(), answered, status);
  }
});

test('an unpaid subscription activates nothing', async () => {
  const { org, bought } = await buy({ status: 'incomplete' });
  await deliver(updated(bought));
  assert.deepEqual(await standing(org), NOT_BOUGHT);
  bought.status = 'active';
  await deliver(updated(bought));
  assert.deepEqual(await standing(org), PRO_ACTIVE);
});

test('an unknown status is not guessed: the event is left for redelivery', async () => {
  const { org, bought } = await buy({ status: 'dreaming' });
  assert.equal((await send(updated(bought))).status, 500);
  assert.deepEqual(await standing(org), NOT_BOUGHT);
});

test('a price without a plan is logged; the event works once the catalogue has it', async () => {
  const { org, bought } = await buyAndNotify();
  bought.items.data[0] = { id: 'si_1', price: { id: 'price_of_tomorrow' }, quantity: 1 };
  const event = updated(bought);
  assert.equal((await send(event)).status, 500);
  assert.match(api.logged(), /price_of_tomorrow: no plan of the catalogue \(BERTH_PLANS_FILE\) has this priceId/);
  assert.deepEqual(await standing(org), PRO_ACTIVE);
  const plans = api.context.plans as Map<string, Plan>;
  plans.set('tomorrow', { ...PRO, id: 'tomorrow', priceId: 'price_of_tomorrow' });
  await deliver(event);
  assert.deepEqual(await standing(org), { ...PRO_ACTIVE, plan: 'tomorrow' });
});

test('an event is 503 while the provider is down and works when redelivered', async () => {
  const { org, bought } = await buy();
  const event = updated(bought);
  stripe.instead = () => 'hang up';
  const { status, answer } = await send(event);
  assert.deepEqual([status, answer.error?.code], [503, 'payment_provider_unavailable']);
  stripe.instead = undefined;
  await deliver(event);
  assert.deepEqual(await standing(org), PRO_ACTIVE);
});

test('a failure in the last step rolls an event back, and redelivery works', async () => {
  const { org, bought } = await buy();
  const event = updated(bought);
  await sql`
    create function refuse() returns trigger language plpgsql as
      $$ begin raise exception 'refused by a test'; end $$`.execute(api.db);
  await sql`
    create trigger refuse before insert on activity
    for each row when (new.kind = 'subscription_changed')
    execute function refuse()`.execute(api.db);
  const before = await countEvents();
  try {
    assert.equal((await send(event)).status, 500);
  } finally {
    await sql`drop function refuse() cascade`.execute(api.db);
  }
  assert.deepEqual([await standing(org), await countEvents(), await changesIn(org.orgId)], [NOT_BOUGHT, before, []]);
  await deliver(event);
  assert.deepEqual(await standing(org), PRO_ACTIVE);
});

test('events of other kinds or foreign subscriptions are accepted and change nothing', async () => {
  const asked = stripe.requests.length;
  await deliver(stripe.event('invoice.paid', { id: 'in_1', object: 'invoice' }));
  await deliver(
    stripe.event('checkout.session.completed', {
      id: 'cs_1',
      object: 'checkout.session',
      subscription: null,
      client_reference_id: null,
    }),
  );
  await deliver(updated(stripe.subscribe({ price: 'price_pro' })));
  await deliver(
    updated(stripe.subscribe({ price: 'price_pro', metadata: { berth_org_id: 'org_of_another_installation' } })),
  );
  assert.equal(stripe.requests.length, asked);
});

test('the newer of two paid subscriptions is followed, and the other is logged', async () => {
  const { org, bought } = await buyAndNotify();
  const second = stripe.subscribe({
    price: 'price_team',
    metadata: { berth_org_id: org.orgId },
    customer: bought.customer,
  });
  await deliver(updated(second));
  await deliver(updated(bought));
  assert.deepEqual(await standing(org), { ...PRO_ACTIVE, plan: 'team' });
  assert.ok(api.logged().includes(`"pays":"${bought.id}"`));
  // The end of the other subscription ends nothing.
  bought.status = 'canceled';
  await deliver(stripe.event('customer.subscription.deleted', bought));
  assert.deepEqual(await standing(org), { ...PRO_ACTIVE, plan: 'team' });
});

test('a repeated end event keeps the plan that an operator assigned', async () => {
  const { org, bought } = await buyAndNotify();
  bought.status = 'canceled';
  await deliver(updated(bought));
  await changePlan(api.db, api.context.plans, { orgId: org.orgId, plan: 'self-hosted' });
  await deliver(stripe.event('customer.subscription.deleted', bought));
  assert.deepEqual(await standing(org), NOT_BOUGHT);
});

test('only an event with a change, of the anchor too, adds a feed row', async () => {
  const { org, bought } = await buyAndNotify();
  const before = await changesIn(org.orgId);
  await deliver(updated(bought));
  assert.deepEqual(await changesIn(org.orgId), before);
  bought.billing_cycle_anchor += 86_400;
  await deliver(updated(bought));
  const [changed] = (await changesIn(org.orgId)).slice(before.length);
  assert.equal(changed?.details['to'].periodAnchor, new Date(bought.billing_cycle_anchor * 1_000).toISOString());
});

test('processed events are kept longer than redelivery lasts, then deleted', async () => {
  const kept = async (): Promise<string[]> =>
    (await api.db.selectFrom('payment_event').select('id').where('id', 'like', 'old_%').orderBy('id').execute()).map(
      ({ id }) => id,
    );
  await sql`insert into payment_event (id, kind, received_at) values
    ('old_59', 'x', now() - interval '59 days'), ('old_61', 'x', now() - interval '61 days')`.execute(api.db);
  await buyAndNotify();
  assert.deepEqual(await kept(), ['old_59']);
});
