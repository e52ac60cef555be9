// Arithmetic of allocations: the target of a resize, and which resources grow or shrink. Pure;
// services/sandboxes/resize.ts applies it.
import type { Allocation } from '@berth/contract/sandboxes/machine-sizes.ts';

/** The target of a resize: the given amounts, the others unchanged. */
export function targetOf(
  present: Allocation,
  asked: { [amount in keyof Allocation]?: number | undefined },
): Allocation {
  return {
    vcpu: asked.vcpu ?? present.vcpu,
    memoryGb: asked.memoryGb ?? present.memoryGb,
    diskGb: asked.diskGb ?? present.diskGb,
  };
}

/** The maximum of each resource. */
export function largerOf(one: Allocation, other: Allocation): Allocation {
  return {
    vcpu: Math.max(one.vcpu, other.vcpu),
    memoryGb: Math.max(one.memoryGb, other.memoryGb),
    diskGb: Math.max(one.diskGb, other.diskGb),
  };
}

export function sameSize(one: Allocation, other: Allocation): boolean {
  return one.vcpu === other.vcpu && one.memoryGb === other.memoryGb && one.diskGb === other.diskGb;
}

/**
 * The part of `wanted` that differs from `inForce`; null if none does. A disk never shrinks, so a
 * larger disk is kept.
 */
export function outstanding(wanted: Allocation, inForce: Allocation): Allocation | null {
  const reachable = { ...wanted, diskGb: Math.max(wanted.diskGb, inForce.diskGb) };
  return sameSize(reachable, inForce) ? null : reachable;
}
