// Which host gets a new machine, and what is short when none can take it. Pure;
// services/placement.ts reserves what it says.
import type { Allocation } from '@berth/contract/sandboxes/machine-sizes.ts';

/** Amounts in the units of the host protocol. */
export interface HostRoom {
  vcpu: number;
  memoryMib: number;
  diskGib: number;
}

export interface HostCandidate {
  id: string;
  /** Not reserved by any sandbox. Negative when a host shrank. */
  free: HostRoom;
}

const RESOURCES = ['vcpu', 'memoryMib', 'diskGib'] as const;
const UNITS = { vcpu: 'vCPU', memoryMib: 'MiB of memory', diskGib: 'GiB of disk' } as const;

/** What a machine of the allocation takes from its host. */
export function roomFor(allocation: Allocation): HostRoom {
  return { vcpu: allocation.vcpu, memoryMib: allocation.memoryGb * 1024, diskGib: allocation.diskGb };
}

/**
 * What a machine that has `from` takes more of its host to have `to`: only the amounts that grow.
 * Empty when none does.
 */
export function growth(from: Allocation, to: Allocation): Partial<HostRoom> {
  const [before, after] = [roomFor(from), roomFor(to)];
  return Object.fromEntries(
    RESOURCES.filter((resource) => after[resource] > before[resource]).map((resource) => [resource, after[resource]]),
  );
}

/**
 * Hosts with room for the machine, the emptiest (by memory, then vCPU) first; ties by id, so that
 * the answer is one.
 */
export function hostsWithRoom(candidates: readonly HostCandidate[], needed: HostRoom): HostCandidate[] {
  return candidates.filter((host) => shortage(host.free, needed) === undefined).toSorted(emptiestFirst);
}

/**
 * One line on what is short where most is free, e.g. `needs 16384 MiB of memory, at most 2048 free
 * on one host`.
 */
export function describeShortage(candidates: readonly HostCandidate[], needed: HostRoom): string {
  const best = candidates.toSorted(emptiestFirst)[0];
  const resource = (best === undefined ? undefined : shortage(best.free, needed)) ?? 'memoryMib';
  const free = Math.max(0, ...candidates.map((host) => host.free[resource]));
  return `needs ${needed[resource]} ${UNITS[resource]}, at most ${free} free on one host`;
}

function emptiestFirst(a: HostCandidate, b: HostCandidate): number {
  return b.free.memoryMib - a.free.memoryMib || b.free.vcpu - a.free.vcpu || (a.id < b.id ? -1 : 1);
}

/**
 * One line on what is short on the one host that counts, e.g. `needs 4 vCPU, 2 are free`; undefined
 * when nothing is.
 */
export function describeShortageOn(free: HostRoom, needed: Partial<HostRoom>): string | undefined {
  const resource = shortage(free, needed);
  return resource && `needs ${needed[resource]} ${UNITS[resource]}, ${Math.max(0, free[resource])} are free`;
}

/**
 * One line on the first amount of the allocation that is above the largest machine; undefined when
 * none is.
 */
export function describeExcess(allocation: Allocation, largest: HostRoom): string | undefined {
  const needed = roomFor(allocation);
  const resource = shortage(largest, needed);
  return (
    resource &&
    `${needed[resource]} ${UNITS[resource]} is more than the ${largest[resource]} that its host can give one machine`
  );
}

function shortage(free: HostRoom, needed: Partial<HostRoom>): (typeof RESOURCES)[number] | undefined {
  return RESOURCES.find((resource) => (needed[resource] ?? -Infinity) > free[resource]);
}
