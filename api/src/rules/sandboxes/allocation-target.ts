// Sizes held against each other: what a resize aims at, which of it is more and which less. Pure;
// services/sandbox-resize.ts acts on it.
import type { Allocation } from '@berth/contract/sandboxes/machine-sizes.ts';

/** What a resize asks for: the amounts given, and the rest as it is. */
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

/** Each amount the larger of the two. */
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
 * What of `wanted` is still to come when `inForce` is the size; null when nothing is. A disk never
 * shrinks: one that is larger by now stays.
 */
export function outstanding(wanted: Allocation, inForce: Allocation): Allocation | null {
  const reachable = { ...wanted, diskGb: Math.max(wanted.diskGb, inForce.diskGb) };
  return sameSize(reachable, inForce) ? null : reachable;
}
