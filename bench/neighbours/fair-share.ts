// Fair share of a neighbour with one vCPU beside busy sandboxes, relative to its rate without them.
import type { Resource } from './rates.ts';

/**
 * CPU, and with it commands, is divided by vCPUs, and no sandbox gets more than its vCPUs. Disk and
 * network are divided evenly among the sandboxes that use them at the same time.
 * @param vcpus of all sandboxes; the first is the busy one, the others have one each
 */
export function fairShare(resource: Resource, vcpus: readonly number[], cores: number): number {
  const [, ...neighbours] = vcpus;
  if (resource === 'disk' || resource === 'network') return neighbours.length / vcpus.length;

  return perVcpu(vcpus, cores) / perVcpu(neighbours, cores);
}

/** Cores per vCPU. */
function perVcpu(vcpus: readonly number[], cores: number): number {
  const all = vcpus.reduce((sum, vcpu) => sum + vcpu, 0);
  return Math.min(1, cores / all);
}
