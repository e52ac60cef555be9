// Sizes that VMs can have, and the size of the template that they are restored from. Memory in MiB,
// disk in GiB.
import type { VmSize } from './driver.ts';

/** Larger VMs are hot-plugged after the restore; smaller ones cannot be made. */
export const TEMPLATE_SIZE = { vcpu: 1, memoryMib: 1_024, diskGib: 10 } as const;

export const VCPU_MAX = 8;
export const MEMORY_MAX_MIB = 65_536;
/** The guest's kernel takes hot-plugged memory in blocks of this size. */
export const MEMORY_STEP_MIB = 128;
/** Memory modules of one VM: each growth adds a module for every power of two in it. */
export const MEMORY_SLOTS = 64;
/** The largest disk that one cluster of L1 entries maps (qemu/machine/disk.ts): 4 TiB. */
export const DISK_MAX_GIB = 4_096;

export const LARGEST: VmSize = { vcpu: VCPU_MAX, memoryMib: MEMORY_MAX_MIB, diskGib: DISK_MAX_GIB };
