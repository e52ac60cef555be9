// Sizes of VMs and of the template they are restored from. Memory in MiB, disk in GiB.
import type { VmSize } from './driver.ts';

/** Larger VMs are hot-plugged after the restore; smaller ones are impossible. */
export const TEMPLATE_SIZE = { vcpu: 1, memoryMib: 1_024, diskGib: 10 } as const;

export const VCPU_MAX = 8;
export const MEMORY_MAX_MIB = 65_536;
/** Block size in which the guest kernel accepts hot-plugged memory. */
export const MEMORY_STEP_MIB = 128;
/** Limit of memory modules per VM: each growth adds a module for every power of two in it. */
export const MEMORY_SLOTS = 64;
/** Largest disk mapped by one cluster of L1 entries (qemu/machine/disk.ts): 4 TiB. */
export const DISK_MAX_GIB = 4_096;

export const LARGEST: VmSize = { vcpu: VCPU_MAX, memoryMib: MEMORY_MAX_MIB, diskGib: DISK_MAX_GIB };
