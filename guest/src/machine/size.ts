// Brings the guest to the size given by the host, and reports the kernel's values.
import type { GuestSize, GuestSizeResult } from '@berth/protocol/calls/identity.ts';
import { growRoot, onlineCpus, onlineMemory, rootDiskGib } from './hotplug.ts';
import { part } from './part.ts';

/** Timeout for hot-plugged vCPUs, memory and disk to become usable. */
const HOTPLUG_DEADLINE_MS = 30_000;

export type Size = Omit<GuestSizeResult, 'clockUnixMs'>;

/**
 * Waits until exactly `vcpu` vCPUs, at least `memoryMib` and a disk of `diskGib` are in use.
 * Resolves with the values read at the end of each part. Rejects with a message that names the part
 * and its current value.
 */
export async function applySize({ vcpu, memoryMib, diskGib }: GuestSize, signal: AbortSignal): Promise<Size> {
  const bounded = AbortSignal.any([signal, AbortSignal.timeout(HOTPLUG_DEADLINE_MS)]);
  await part('vCPUs', () => onlineCpus(vcpu, bounded));
  const onlineMib = await part('memory', () => onlineMemory(memoryMib, bounded));
  await part('disk', () => growRoot(diskGib, bounded));
  return { vcpu, memoryMib: onlineMib, diskGib: rootDiskGib() };
}
