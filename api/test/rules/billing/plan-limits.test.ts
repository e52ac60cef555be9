// Limits of a plan.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { MACHINE_SIZES, machineSize } from '@berth/contract/sandboxes/machine-sizes.ts';
import { SELF_HOSTED_PLAN, type Plan } from '@berth/contract/billing/plans.ts';
import fc from 'fast-check';
import type { CodedError } from '../../../src/rules/coded-error.ts';
import { requireOneMore, requireSizeWithinPlan, requireTtlWithinPlan } from '../../../src/rules/billing/plan-limits.ts';

const plan = (changed: Partial<Plan>): Plan => ({ ...SELF_HOSTED_PLAN, id: 'starter', name: 'Starter', ...changed });
/** Returns the error code of the rule, null if it passes. */
function refusal(rule: () => void): string | null {
  try {
    rule();
    return null;
  } catch (error) {
    return (error as CodedError).code;
  }
}

const anyAllocation = fc.record({
  vcpu: fc.integer({ min: 1, max: 40 }),
  memoryGb: fc.integer({ min: 1, max: 80 }),
  diskGb: fc.integer({ min: 1, max: 400 }),
});

test('a size is within a plan if no amount exceeds that of the largest size', () => {
  fc.assert(
    fc.property(fc.constantFrom(...machineSize.options), anyAllocation, (largestSize, allocation) => {
      const largest = MACHINE_SIZES[largestSize];
      const within =
        allocation.vcpu <= largest.vcpu &&
        allocation.memoryGb <= largest.memoryGb &&
        allocation.diskGb <= largest.diskGb;
      assert.equal(
        refusal(() => requireSizeWithinPlan(plan({ largestSize }), allocation)),
        within ? null : 'plan_limit',
      );
    }),
  );
});

test('a size above the plan is refused with plan, limit and requested size', () => {
  const medium = plan({ largestSize: 'medium' });
  assert.throws(() => requireSizeWithinPlan(medium, { vcpu: 2, memoryGb: 5, diskGb: 20 }), {
    code: 'plan_limit',
    message:
      'the plan Starter (starter) allows sandboxes up to the machine size medium, ' +
      'which has 4 GB of memory; 5 were requested',
  });
});

test('a time to live up to the session cap is allowed; above it is refused with both', () => {
  const capped = plan({ ephemeralSessionSeconds: 3_600 });
  requireTtlWithinPlan(capped, 3_600);
  assert.throws(() => requireTtlWithinPlan(capped, 3_601), {
    code: 'plan_limit',
    message: /Starter \(starter\).*3600 s.*3601/,
  });
});

test('another sandbox is allowed below the cap and refused at it, naming the cap', () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 50 }), fc.nat({ max: 60 }), (concurrentSandboxes, present) => {
      const outcome = refusal(() => requireOneMore(plan({ concurrentSandboxes }), present));
      assert.equal(outcome, present < concurrentSandboxes ? null : 'concurrent_sandbox_limit');
    }),
  );
  assert.throws(() => requireOneMore(plan({ concurrentSandboxes: 5 }), 5), {
    message: /^the plan Starter \(starter\) allows 5 sandboxes awake/,
  });
});

test('the self-hosted plan has no caps', () => {
  fc.assert(fc.property(anyAllocation, (allocation) => requireSizeWithinPlan(SELF_HOSTED_PLAN, allocation)));
  fc.assert(fc.property(fc.nat(), (amount) => requireTtlWithinPlan(SELF_HOSTED_PLAN, amount)));
  fc.assert(fc.property(fc.nat(), (present) => requireOneMore(SELF_HOSTED_PLAN, present)));
});
