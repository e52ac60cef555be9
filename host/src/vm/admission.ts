// Admission: decides if another VM fits on this host, by pure arithmetic over promised resources,
// and reads the host's figures. Must not know how VMs are made. A refusal is typed (`Shortage`): it
// names the short resource and the amount available.
import { readFileSync, statfsSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import type { Shortage } from './host-error.ts';

export interface Amounts {
  vcpu: number;
  memoryMib: number;
  diskGib: number;
}

export interface HostFigures {
  cores: number;
  memTotalMib: number;
  memAvailableMib: number;
  /** Size of the file system that holds the data folder. */
  diskTotalGib: number;
  diskFreeGib: number;
}

export interface AdmissionPolicy {
  /** vCPUs promised per core; sandboxes are mostly idle. */
  cpuOvercommit: number;
  /**
   * Overcommit factor of the memory left for VMs: guests touch little of theirs. The kernel's
   * available memory is a further limit.
   */
  memoryOvercommit: number;
  /** Reserved for the system, the control plane and the page cache of the template. */
  memoryReserveMib: number;
  /** Overhead of a VM beyond its own memory: QEMU and, under TCG, its translation buffer. */
  vmOverheadMib: number;
  /** Overcommit factor of the file system; disks are sparse files. */
  diskOvercommit: number;
  diskReserveGib: number;
}

/** Memory of the template VM, the minimum of every VM. */
const SMALLEST_VM_MIB = 1_024;

export interface HeldVm {
  /**
   * `growing`: admitted, memory not used yet. `using`: running. `added`: promised to a running VM,
   * not used yet. `disk`: only its disk remains.
   */
  holds: 'growing' | 'using' | 'added' | 'disk';
  size: Amounts;
}

/**
 * Resources for the control plane to allocate, as guest memory: net of each VM's overhead if all
 * had the smallest size. A control plane that stays within it is never refused here for promised
 * memory.
 */
export function allocatableOf(host: HostFigures, policy: AdmissionPolicy): Amounts {
  const capacity = capacityOf(host, policy);
  const share = SMALLEST_VM_MIB / (SMALLEST_VM_MIB + policy.vmOverheadMib);
  return { ...capacity, memoryMib: Math.floor(capacity.memoryMib * share) };
}

/** Largest single VM on an empty host, within the driver's limits. Memory is the guest's. */
export function largestOf(host: HostFigures, policy: AdmissionPolicy, driver: Amounts): Amounts {
  const { vcpu, memoryMib, diskGib } = capacityOf(host, policy);
  return {
    vcpu: Math.min(vcpu, driver.vcpu),
    memoryMib: Math.max(0, Math.min(memoryMib - policy.vmOverheadMib, driver.memoryMib)),
    diskGib: Math.min(diskGib, driver.diskGib),
  };
}

/** Total that may be promised to VMs, overhead included. */
export function capacityOf(host: HostFigures, policy: AdmissionPolicy): Amounts {
  return {
    vcpu: Math.floor(host.cores * policy.cpuOvercommit),
    memoryMib: Math.max(0, Math.floor((host.memTotalMib - policy.memoryReserveMib) * policy.memoryOvercommit)),
    diskGib: Math.max(0, Math.floor((host.diskTotalGib - policy.diskReserveGib) * policy.diskOvercommit)),
  };
}

/** Sum of promises, the overhead of each VM's process included. */
export function promisedTo(held: readonly HeldVm[], policy: AdmissionPolicy): Amounts {
  const sum: Amounts = { vcpu: 0, memoryMib: 0, diskGib: 0 };
  for (const { holds, size } of held) {
    sum.diskGib += size.diskGib;
    if (holds !== 'disk') {
      sum.vcpu += size.vcpu;
      sum.memoryMib += size.memoryMib + (holds === 'added' ? 0 : policy.vmOverheadMib);
    }
  }
  return sum;
}

/**
 * The first short resource, or null if all fit. Memory amounts are the guest's, without overhead.
 * `what` is wanted: another VM, or an addition to a running one.
 */
export function shortageFor(
  wanted: Amounts,
  held: readonly HeldVm[],
  host: HostFigures,
  policy: AdmissionPolicy,
  what: 'machine' | 'added' = 'machine',
): Shortage | null {
  const capacity = capacityOf(host, policy);
  const promised = promisedTo(held, policy);
  // Recently admitted VMs will use memory that the kernel still reports as available.
  const growingMib = promisedTo(
    held.filter((vm) => vm.holds === 'growing' || vm.holds === 'added'),
    policy,
  ).memoryMib;
  const overheadMib = what === 'machine' ? policy.vmOverheadMib : 0;
  const available: Amounts = {
    vcpu: capacity.vcpu - promised.vcpu,
    memoryMib: Math.min(capacity.memoryMib - promised.memoryMib, host.memAvailableMib - growingMib) - overheadMib,
    diskGib: host.diskFreeGib <= policy.diskReserveGib ? 0 : capacity.diskGib - promised.diskGib,
  };
  for (const resource of ['vcpu', 'memoryMib', 'diskGib'] as const) {
    // A resource not requested is never short, even on a host overcommitted by an earlier policy.
    if (wanted[resource] > 0 && wanted[resource] > available[resource])
      return { resource, requested: wanted[resource], available: Math.max(0, Math.floor(available[resource])) };
  }
  return null;
}

/**
 * Reads the host's current figures. Synchronous on purpose: nothing else may be admitted between
 * reading and promising.
 */
export function readHost(dataFolder: string): HostFigures {
  const memory = parseMeminfo(readFileSync('/proc/meminfo', 'latin1'));
  const disk = statfsSync(dataFolder);
  return {
    cores: availableParallelism(),
    ...memory,
    diskTotalGib: (disk.blocks * disk.bsize) / 1024 ** 3,
    diskFreeGib: (disk.bavail * disk.bsize) / 1024 ** 3,
  };
}

/** Throws if a line is missing: without these figures nothing may be admitted. */
export function parseMeminfo(text: string): Pick<HostFigures, 'memTotalMib' | 'memAvailableMib'> {
  const kib = (name: string): number => {
    const match = new RegExp(`^${name}:\\s+(\\d+) kB$`, 'm').exec(text);
    if (match === null) throw new Error(`/proc/meminfo has no line ${name}`);

    return Number(match[1]);
  };
  return { memTotalMib: Math.floor(kib('MemTotal') / 1024), memAvailableMib: Math.floor(kib('MemAvailable') / 1024) };
}
