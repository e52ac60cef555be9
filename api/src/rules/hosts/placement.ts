// Selects the host of a new VM, and describes the shortage if no host fits. Pure;
// services/hosts/placement.ts reserves the capacity.
import type { Allocation } from '@berth/contract/sandboxes/machine-sizes.ts';
import { capacityRemedy, storageGib } from '@berth/protocol/host.ts';

export { STORAGE_OVERHEAD_GIB } from '@berth/protocol/host.ts';

/** Amounts in the units of the host protocol. */
export interface HostRoom {
  vcpu: number;
  memoryMib: number;
  diskGib: number;
}

export interface HostCandidate {
  id: string;
  /** Capacity that no sandbox reserves. Negative after a host shrank. */
  free: HostRoom;
}

const RESOURCES = ['vcpu', 'memoryMib', 'diskGib'] as const;
const UNITS = { vcpu: 'vCPU', memoryMib: 'MiB of memory', diskGib: 'GiB of disk' } as const;
const RESERVED_UNITS = { ...UNITS, diskGib: 'GiB of disk (snapshot included)' } as const;

/** Size of a VM with an allocation. */
export function sizeFor(allocation: Allocation): HostRoom {
  return { vcpu: allocation.vcpu, memoryMib: allocation.memoryGb * 1024, diskGib: allocation.diskGb };
}

/** Host capacity that an allocation reserves: its disk space includes its snapshot. */
export function roomFor(allocation: Allocation): HostRoom {
  const size = sizeFor(allocation);
  return { ...size, diskGib: storageGib(size) };
}

/**
 * Host capacity to grow from `from` to `to`: only the amounts that increase. Empty if none does.
 */
export function growth(from: Allocation, to: Allocation): Partial<HostRoom> {
  const [before, after] = [roomFor(from), roomFor(to)];
  return Object.fromEntries(
    RESOURCES.filter((resource) => after[resource] > before[resource]).map((resource) => [resource, after[resource]]),
  );
}

/**
 * Hosts with enough free capacity, most free memory first, then most free vCPUs, then by id so that
 * the order is total.
 */
export function hostsWithRoom(candidates: readonly HostCandidate[], needed: HostRoom): HostCandidate[] {
  return candidates.filter((host) => shortage(host.free, needed) === undefined).toSorted(emptiestFirst);
}

/**
 * Describes the shortage on the host with the most free capacity, e.g. `needs 16384 MiB of memory,
 * at most 2048 free on one host`, with the operator's remedy.
 */
export function describeShortage(candidates: readonly HostCandidate[], needed: HostRoom): string {
  const best = candidates.toSorted(emptiestFirst)[0];
  const resource = (best === undefined ? undefined : shortage(best.free, needed)) ?? 'memoryMib';
  const free = Math.max(0, ...candidates.map((host) => host.free[resource]));
  const amount = `${needed[resource]} ${RESERVED_UNITS[resource]}`;
  return `needs ${amount}, at most ${free} free on one host. ${capacityRemedy(resource)}`;
}

function emptiestFirst(a: HostCandidate, b: HostCandidate): number {
  return b.free.memoryMib - a.free.memoryMib || b.free.vcpu - a.free.vcpu || (a.id < b.id ? -1 : 1);
}

/**
 * Describes the shortage on one host, e.g. `needs 4 vCPU, 2 are free`, with the operator's remedy;
 * undefined if there is none.
 */
export function describeShortageOn(free: HostRoom, needed: Partial<HostRoom>): string | undefined {
  const resource = shortage(free, needed);
  if (resource === undefined) return undefined;
  const left = Math.max(0, free[resource]);
  return `needs ${needed[resource]} ${RESERVED_UNITS[resource]}, ${left} are free. ${capacityRemedy(resource)}`;
}

/**
 * Describes the first amount of the allocation above the largest VM; undefined if there is none.
 */
export function describeExcess(allocation: Allocation, largest: HostRoom): string | undefined {
  const needed = sizeFor(allocation);
  const resource = shortage(largest, needed);
  return (
    resource && `${needed[resource]} ${UNITS[resource]} exceeds the ${largest[resource]} that its host can give one VM`
  );
}

function shortage(free: HostRoom, needed: Partial<HostRoom>): (typeof RESOURCES)[number] | undefined {
  return RESOURCES.find((resource) => (needed[resource] ?? -Infinity) > free[resource]);
}
