// Limits of renewals.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { TTL_SECONDS } from '@berth/contract/route/limits.ts';
import { SELF_HOSTED_PLAN, type Plan } from '@berth/contract/billing/plans.ts';
import fc from 'fast-check';
import { renewedExpiry, requireRenewalWithinPlan, type Session } from '../../../src/rules/sandboxes/renewal.ts';

const capped = (ephemeralSessionSeconds: number): Plan => ({ ...SELF_HOSTED_PLAN, ephemeralSessionSeconds });
const BEGIN = Date.parse('2026-01-31T08:15:30.250Z');
/** Sandbox after the given number of renewals. */
const session = (ttlSeconds: number, renewals: number): Session => ({
  createdAt: new Date(BEGIN),
  expiresAt: new Date(BEGIN + ttlSeconds * (1 + renewals) * 1_000),
  ttlSeconds,
});
const allows = (plan: Plan, of: Session): boolean => {
  try {
    requireRenewalWithinPlan(plan, of);
    return true;
  } catch (error) {
    assert.equal((error as { code?: string }).code, 'session_cap_exhausted');
    return false;
  }
};

const CASES: [ttlSeconds: number, renewals: number, capSeconds: number, allowed: boolean][] = [
  [60, 0, 120, true],
  [60, 0, 119, false],
  [60, 1, 120, false],
  [60, 1, 180, true],
  [1, 0, 1, false],
  [86_400, 0, 172_800, true],
  [86_400, 1, 172_800, false],
];

for (const [ttl, renewals, cap, allowed] of CASES) {
  test(`${ttl} s, renewed ${renewals} times, under a cap of ${cap} s: ${allowed ? 'once more' : 'no more'}`, () => {
    assert.equal(allows(capped(cap), session(ttl, renewals)), allowed);
  });
}

test('a renewal adds one time to live at any moment', () => {
  assert.equal(renewedExpiry(session(60, 2)).toISOString(), '2026-01-31T08:19:30.250Z');
});

test('renewals end within the cap, and one more time to live would exceed it', () => {
  const ttls = fc.integer({ min: TTL_SECONDS.min, max: TTL_SECONDS.max });
  fc.assert(
    fc.property(ttls, fc.integer({ min: 0, max: 40 }), fc.nat({ max: 86_400 }), (ttl, more, rest) => {
      const cap = ttl * (1 + more) + (rest % ttl);
      let renewals = 0;
      while (allows(capped(cap), session(ttl, renewals))) renewals += 1;
      const lasts = ttl * (1 + renewals);
      assert.ok(lasts <= cap && lasts + ttl > cap, `${lasts} s of ${cap} s`);
      assert.equal(renewals, more);
    }),
  );
});

test('without a cap a sandbox can be renewed forever', () => {
  fc.assert(fc.property(fc.nat(), (renewals) => assert.ok(allows(SELF_HOSTED_PLAN, session(1, renewals)))));
});
