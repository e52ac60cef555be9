// A sandbox's machine in the words of the host protocol: what its row asks for, and what the host's
// answer says it has. Pure.
import type { Allocation } from '@berth/contract/sandboxes/machine-sizes.ts';
import type { VmSpec, VmView } from '@berth/protocol/host.ts';
import { roomFor } from '../../rules/hosts/placement.ts';
import { allocationOf, type WakeSource } from '../../store/sandboxes/sandboxes.ts';
import type { SandboxRow } from '../../store/database/schema.ts';

/**
 * The machine of the given size, or of the size in force; its hostname is the sandbox's name as far
 * as a DNS label can hold it.
 */
export function vmSpecOf(sandbox: SandboxRow, allocation: Allocation = allocationOf(sandbox)): VmSpec {
  return {
    ...roomFor(allocation),
    hostname: hostnameOf(sandbox),
    sshAuthorizedKeys: sandbox.ssh_public_key === null ? [] : [sandbox.ssh_public_key],
  };
}

/** The size that a host says a machine has; null when it does not say. */
export function sizeOf(vm: VmView): Allocation | null {
  if (vm.spec === undefined) return null;
  const { vcpu, memoryMib, diskGib } = vm.spec;
  return { vcpu, memoryGb: Math.max(1, Math.floor(memoryMib / 1_024)), diskGb: diskGib };
}

/** What a wake of the machine would start from. */
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
