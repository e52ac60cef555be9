// Brings the machine to the size that the host gave it, and says what the kernel then has.
import type { GuestSize, GuestSizeResult } from '@berth/protocol/calls/identity.ts';
import { growRoot, onlineCpus, onlineMemory, rootDiskGib } from './hotplug.ts';
import { part } from './part.ts';

/** How long hot-plugged vCPUs, memory and disk may take to be usable. */
const HOTPLUG_DEADLINE_MS = 30_000;

export type Size = Omit<GuestSizeResult, 'clockUnixMs'>;

/**
 * Waits until exactly so many vCPUs, at least so much memory and so large a disk are in use.
 * Resolves with what there is, as read at the end of each part. Rejects with a message that names
 * the part and what there is of it.
 */
export async function bringToSize({ vcpu, memoryMib, diskGib }: GuestSize, signal: AbortSignal): Promise<Size> {
  const bounded = AbortSignal.any([signal, AbortSignal.timeout(HOTPLUG_DEADLINE_MS)]);
  await part('vCPUs', () => onlineCpus(vcpu, bounded));
  const onlineMib = await part('memory', () => onlineMemory(memoryMib, bounded));
  await part('disk', () => growRoot(diskGib, bounded));
  return { vcpu, memoryMib: onlineMib, diskGib: rootDiskGib() };
}
