// What of this machine decides how its VMs run: the processor and the kernel. Reads, decides
// nothing.
import { readFile } from 'node:fs/promises';
import { release } from 'node:os';

export interface HostMachine {
  /** `GenuineIntel`, `AuthenticAMD`. */
  cpuVendor: string;
  cpuModel: string;
  kernel: string;
}

/** Reads /proc/cpuinfo; what it does not say is `unknown`. */
export async function readHostMachine(): Promise<HostMachine> {
  const text = await readFile('/proc/cpuinfo', 'utf8');
  const field = (name: string): string => new RegExp(`^${name}\\s*: (.+)$`, 'm').exec(text)?.[1]?.trim() ?? 'unknown';
  return { cpuVendor: field('vendor_id'), cpuModel: field('model name'), kernel: release() };
}
