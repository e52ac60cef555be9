// What machine a sandbox's row asks its host for. Pure.
import type { VmSpec } from '@berth/protocol/host.ts';
import type { SandboxRow } from '../store/schema.ts';

/** The machine a sandbox is entitled to; its hostname is the sandbox's name as far as a DNS label can hold it. */
export function vmSpecOf(sandbox: SandboxRow): VmSpec {
  return {
    vcpu: sandbox.allocated_vcpu,
    memoryMib: sandbox.allocated_memory_gb * 1_024,
    diskGib: sandbox.allocated_disk_gb,
    hostname: hostnameOf(sandbox),
    sshAuthorizedKeys: sandbox.ssh_public_key === null ? [] : [sandbox.ssh_public_key],
  };
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
