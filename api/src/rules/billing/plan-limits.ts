// Plan limits: sizes, concurrent sandboxes, lifetime of ephemeral sandboxes. Pure;
// services/billing/plans.ts finds the plan in force.
import { MACHINE_SIZES, type Allocation } from '@berth/contract/sandboxes/machine-sizes.ts';
import type { Plan } from '@berth/contract/billing/plans.ts';
import { CodedError } from '../coded-error.ts';

const AMOUNTS = [
  { field: 'vcpu', unit: 'vCPU' },
  { field: 'memoryGb', unit: 'GB of memory' },
  { field: 'diskGb', unit: 'GB of disk' },
] as const satisfies { field: keyof Allocation; unit: string }[];

/**
 * Throws `plan_limit`, naming plan and limit, if an amount of the allocation exceeds the plan's
 * largest size.
 */
export function requireSizeWithinPlan(plan: Plan, allocation: Allocation): void {
  if (plan.largestSize === null) return;
  const largest = MACHINE_SIZES[plan.largestSize];
  const passed = AMOUNTS.find(({ field }) => allocation[field] > largest[field]);
  if (passed === undefined) return;
  const { field, unit } = passed;
  throw new CodedError(
    'plan_limit',
    `${describePlan(plan)} allows sandboxes up to the machine size ${plan.largestSize}, ` +
      `which has ${largest[field]} ${unit}; ${allocation[field]} were requested`,
  );
}

/**
 * Throws `plan_limit`, naming plan and limit, if `ttlSeconds` exceeds the plan's maximum lifetime.
 */
export function requireTtlWithinPlan(plan: Plan, ttlSeconds: number): void {
  const cap = plan.ephemeralSessionSeconds;
  if (cap === null || ttlSeconds <= cap) return;
  throw new CodedError(
    'plan_limit',
    `${describePlan(plan)} allows ephemeral sandboxes up to ${cap} s; body.ttlSeconds is ${ttlSeconds}`,
  );
}

/** Throws `concurrent_sandbox_limit`, naming the limit, if one more sandbox would exceed it. */
export function requireOneMore(plan: Plan, present: number): void {
  const cap = plan.concurrentSandboxes;
  if (cap === null || present < cap) return;
  throw new CodedError(
    'concurrent_sandbox_limit',
    `${describePlan(plan)} allows ${cap} sandbox${cap === 1 ? '' : 'es'} awake or starting at the same time, ` +
      `and the org has ${present}; ` +
      'destroy one or put one to sleep',
  );
}

/** Example: `the plan Starter (starter)`. */
export function describePlan(plan: Plan): string {
  return `the plan ${plan.name} (${plan.id})`;
}
