// Effect of a provider's subscription on the org's subscription.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import {
  changeOf,
  type PaidSubscription,
  type RecordedSubscription,
} from '../../../src/rules/billing/subscription-change.ts';

const AT = new Date('2026-05-01T12:00:00.000Z');
const PLANS = new Map([
  ['price_a', 'a'],
  ['price_b', 'b'],
]);
const planOf = (priceId: string): string | undefined => PLANS.get(priceId);
const given: RecordedSubscription = { plan: 'self-hosted', status: 'active', startedAt: AT, paidId: null };
const follows = (changes: Partial<RecordedSubscription> = {}): RecordedSubscription => ({
  plan: 'a',
  status: 'active',
  startedAt: AT,
  paidId: 'sub_1',
  ...changes,
});
const paid = (changes: Partial<PaidSubscription> = {}): PaidSubscription => ({
  id: 'sub_1',
  customerId: 'cus_1',
  priceIds: ['price_a'],
  status: 'active',
  createdAt: AT,
  periodAnchor: AT,
  canceledAt: null,
  cancelsAt: null,
  ...changes,
});
const later = new Date(AT.getTime() + 1_000);

test("a purchase replaces an operator's plan and an ended one", () => {
  const followed = { kind: 'follow', plan: 'a', status: 'active', instead: null };
  assert.deepEqual(changeOf(given, paid(), planOf), followed);
  assert.deepEqual(changeOf({ ...given, status: 'canceled' }, paid(), planOf), followed);
  assert.deepEqual(
    changeOf(follows({ paidId: 'sub_0', status: 'canceled', startedAt: later }), paid(), planOf),
    followed,
  );
});

test('an unpaid subscription changes nothing', () => {
  for (const recorded of [given, follows()])
    assert.equal(changeOf(recorded, paid({ status: 'pending' }), planOf).kind, 'ignore');
});

test("every plan and status of the org's current subscription is adopted", () => {
  for (const status of ['active', 'past_due', 'canceled'] as const) {
    assert.deepEqual(changeOf(follows(), paid({ status, priceIds: ['price_b'] }), planOf), {
      kind: 'follow',
      plan: 'b',
      status,
      instead: null,
    });
  }
});

test('the end of another subscription changes nothing', () => {
  assert.equal(changeOf(follows(), paid({ id: 'sub_0', status: 'canceled' }), planOf).kind, 'ignore');
  assert.equal(changeOf(given, paid({ status: 'canceled' }), planOf).kind, 'ignore');
});

test('the plan is that of the first known price; an unknown one is reported unless ended', () => {
  assert.equal(
    (changeOf(given, paid({ priceIds: ['price_seats', 'price_b'] }), planOf) as { plan?: string }).plan,
    'b',
  );
  assert.deepEqual(changeOf(given, paid({ priceIds: ['price_seats'] }), planOf), { kind: 'unknown_price' });
  assert.deepEqual(changeOf(follows(), paid({ priceIds: [], status: 'canceled' }), planOf), {
    kind: 'follow',
    plan: 'a',
    status: 'canceled',
    instead: null,
  });
});

test('of two paid subscriptions the newer is followed, and the other is named', () => {
  const newer = paid({ id: 'sub_2', createdAt: later, priceIds: ['price_b'] });
  assert.deepEqual(changeOf(follows(), newer, planOf), {
    kind: 'follow',
    plan: 'b',
    status: 'active',
    instead: 'sub_1',
  });
  assert.equal(changeOf(follows({ paidId: 'sub_2', startedAt: later }), paid(), planOf).kind, 'ignore');
});

test('any order and repetition of active subscriptions ends with the same one', () => {
  const bought = fc.uniqueArray(
    fc.record({
      id: fc.stringMatching(/^sub_[a-z]{1,4}$/),
      seconds: fc.integer({ min: 0, max: 3 }),
      price: fc.constantFrom('price_a', 'price_b'),
    }),
    { selector: ({ id }) => id, minLength: 1, maxLength: 5 },
  );
  fc.assert(
    fc.property(
      bought.chain((all) =>
        fc.tuple(
          fc.constant(all),
          fc.array(fc.constantFrom(...all), { maxLength: 20 }),
          fc.shuffledSubarray(all, { minLength: all.length }),
        ),
      ),
      ([all, before, rest]) => {
        let recorded = given;
        for (const { id, seconds, price } of [...before, ...rest]) {
          const one = paid({ id, createdAt: new Date(AT.getTime() + seconds * 1_000), priceIds: [price] });
          const change = changeOf(recorded, one, planOf);
          if (change.kind === 'follow')
            recorded = { plan: change.plan, status: change.status, startedAt: one.createdAt, paidId: id };
        }
        const [newest] = all.toSorted((one, other) => other.seconds - one.seconds || (one.id < other.id ? 1 : -1));
        assert.deepEqual([recorded.paidId, recorded.plan], [newest?.id, planOf(newest?.price ?? '')]);
      },
    ),
  );
});
