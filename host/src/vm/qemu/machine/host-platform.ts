// Properties of this host that affect its VMs: processor and kernel. Reads only.
import { readFile } from 'node:fs/promises';
import { release } from 'node:os';

export interface HostPlatform {
  /** For example `GenuineIntel` or `AuthenticAMD`. */
  cpuVendor: string;
  cpuModel: string;
  kernel: string;
  /** The host is itself a VM: KVM in it is nested. */
  isVm: boolean;
}

/** Reads /proc/cpuinfo; missing values are `unknown`. */
export async function readHostPlatform(): Promise<HostPlatform> {
  const text = await readFile('/proc/cpuinfo', 'utf8');
  const field = (name: string): string => new RegExp(`^${name}\\s*: (.+)$`, 'm').exec(text)?.[1]?.trim() ?? 'unknown';
  const isVm = / hypervisor( |$)/.test(field('flags'));
  return { cpuVendor: field('vendor_id'), cpuModel: field('model name'), kernel: release(), isVm };
}
