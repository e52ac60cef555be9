// Converts sandbox rows to VM specs, and a host's VM views to sizes. Pure.
import type { Allocation } from '@berth/contract/sandboxes/machine-sizes.ts';
import type { VmSpec, VmView } from '@berth/protocol/host.ts';
import { sizeFor } from '../../rules/hosts/placement.ts';
import { allocationOf, egressOf, type WakeSource } from '../../store/sandboxes/sandboxes.ts';
import type { SandboxRow } from '../../store/database/schema.ts';

/**
 * VM spec with the given or current size. The hostname is the sandbox's name, shortened to a DNS
 * label.
 */
export function vmSpecOf(sandbox: SandboxRow, allocation: Allocation = allocationOf(sandbox)): VmSpec {
  return {
    ...sizeFor(allocation),
    hostname: hostnameOf(sandbox),
    sshAuthorizedKeys: sandbox.ssh_public_key === null ? [] : [sandbox.ssh_public_key],
    // A host of an earlier release rejects the field, so that no policy is silently ignored.
    ...(sandbox.egress_revision === 0 ? {} : { egress: egressOf(sandbox) }),
  };
}

/** Size of a VM as reported by its host; null if not reported. */
export function sizeOf(vm: VmView): Allocation | null {
  if (vm.spec === undefined) return null;
  const { vcpu, memoryMib, diskGib } = vm.spec;
  return { vcpu, memoryGb: Math.max(1, Math.floor(memoryMib / 1_024)), diskGb: diskGib };
}

/** Source from which a wake of the VM would start. */
export function remainsOf(vm: VmView): WakeSource | null {
  if (vm.keeps === undefined) return vm.status === 'asleep' ? 'snapshot' : null;
  return vm.keeps === 'nothing' ? null : vm.keeps;
}

function hostnameOf(sandbox: SandboxRow): string {
  const label = sandbox.name
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .replace(/^-+/, '')
    .slice(0, 63)
    .replace(/-+$/, '');
  return label === '' ? sandbox.id.replace('_', '-') : label;
}
