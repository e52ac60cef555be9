// Admission: decides if another VM fits on this host, by pure arithmetic over promised resources,
// and reads the host's figures. Must not know how VMs are made. A refusal is typed (`Shortage`): it
// names the short resource and the amount available.
import { readdirSync, readFileSync, statfsSync, statSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { storageGib } from '@berth/protocol/host.ts';
import { hasCode } from '@berth/os/errors.ts';
import type { Shortage } from './host-error.ts';

export interface Amounts {
  vcpu: number;
  memoryMib: number;
  diskGib: number;
}

/** Resources that a VM of a size reserves: its disk space includes its snapshot. */
export function reservationOf({ vcpu, memoryMib, diskGib }: Amounts): Amounts {
  return { vcpu, memoryMib, diskGib: storageGib({ memoryMib, diskGib }) };
}

/** Additional resources that a VM reserves when it grows from `from` to `to`; never negative. */
export function growthOf(from: Amounts, to: Amounts): Amounts {
  const memoryMib = Math.max(0, to.memoryMib - from.memoryMib);
  const larger = { memoryMib: from.memoryMib + memoryMib, diskGib: Math.max(from.diskGib, to.diskGib) };
  return { vcpu: Math.max(0, to.vcpu - from.vcpu), memoryMib, diskGib: storageGib(larger) - storageGib(from) };
}

export interface HostFigures {
  cores: number;
  memTotalMib: number;
  memAvailableMib: number;
  /** Size of the file system that holds the data folder. */
  diskTotalGib: number;
  diskFreeGib: number;
  /** Part of that file system that others than VMs take: database, image, the host's own files. */
  diskOthersGib: number;
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
  /** Overcommit factor of the file system: disks and snapshots rarely reach their largest size. */
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
  /** A {@link reservationOf}, or a {@link growthOf} with `added`. */
  reserves: Amounts;
}

/**
 * Resources for the control plane to allocate, as guest memory: net of each VM's overhead if all
 * had the smallest size. Memory that other processes use counts as taken: a control plane that
 * stays within it is not refused here later.
 */
export function allocatableOf(host: HostFigures, policy: AdmissionPolicy, held: readonly HeldVm[] = []): Amounts {
  const capacity = capacityOf(host, policy);
  const share = SMALLEST_VM_MIB / (SMALLEST_VM_MIB + policy.vmOverheadMib);
  const reservedMib = promisedTo(held, { ...policy, vmOverheadMib: 0 }).memoryMib;
  const unusedMib = Math.max(0, host.memAvailableMib - growingMib(held, policy));
  return {
    ...capacity,
    memoryMib: Math.min(Math.floor(capacity.memoryMib * share), reservedMib + Math.floor(unusedMib * share)),
  };
}

/** Largest single VM on an empty host, within the driver's limits. Memory is the guest's. */
export function largestOf(host: HostFigures, policy: AdmissionPolicy, driver: Amounts): Amounts {
  const { vcpu, memoryMib, diskGib } = capacityOf(host, policy);
  return {
    vcpu: Math.min(vcpu, driver.vcpu),
    memoryMib: Math.max(0, Math.min(memoryMib - policy.vmOverheadMib, driver.memoryMib)),
    diskGib: Math.max(0, Math.min(diskGib - storageGib({ memoryMib: SMALLEST_VM_MIB, diskGib: 0 }), driver.diskGib)),
  };
}

/** Total that may be promised to VMs, overhead included. */
export function capacityOf(host: HostFigures, policy: AdmissionPolicy): Amounts {
  return {
    vcpu: Math.floor(host.cores * policy.cpuOvercommit),
    memoryMib: Math.max(0, Math.floor((host.memTotalMib - policy.memoryReserveMib) * policy.memoryOvercommit)),
    diskGib: Math.max(
      0,
      Math.floor((host.diskTotalGib - host.diskOthersGib - policy.diskReserveGib) * policy.diskOvercommit),
    ),
  };
}

/** Sum of promises, the overhead of each VM's process included. */
export function promisedTo(held: readonly HeldVm[], policy: AdmissionPolicy): Amounts {
  const sum: Amounts = { vcpu: 0, memoryMib: 0, diskGib: 0 };
  for (const { holds, reserves } of held) {
    sum.diskGib += reserves.diskGib;
    if (holds !== 'disk') {
      sum.vcpu += reserves.vcpu;
      sum.memoryMib += reserves.memoryMib + (holds === 'added' ? 0 : policy.vmOverheadMib);
    }
  }
  return sum;
}

/** Memory that recently admitted VMs will use, and that the kernel still reports as available. */
function growingMib(held: readonly HeldVm[], policy: AdmissionPolicy): number {
  return promisedTo(
    held.filter((vm) => vm.holds === 'growing' || vm.holds === 'added'),
    policy,
  ).memoryMib;
}

/**
 * The first short resource, or null if all fit. Memory amounts are the guest's, without overhead.
 * `what` is wanted: the reservation of another VM, or the growth of a running one.
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
  const overheadMib = what === 'machine' ? policy.vmOverheadMib : 0;
  const available: Amounts = {
    vcpu: capacity.vcpu - promised.vcpu,
    memoryMib:
      Math.min(capacity.memoryMib - promised.memoryMib, host.memAvailableMib - growingMib(held, policy)) - overheadMib,
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
 * @param vmFolders folders of the VMs whose reservations are counted
 */
export function readHost(dataFolder: string, vmFolders: readonly string[]): HostFigures {
  const memory = parseMeminfo(readFileSync('/proc/meminfo', 'latin1'));
  // First, so that a growing file counts as another's for a moment, never as free.
  const ofVms = vmFolders.reduce((sum, folder) => sum + takenBy(folder), 0);
  const disk = statfsSync(dataFolder);
  return {
    cores: availableParallelism(),
    ...memory,
    diskTotalGib: (disk.blocks * disk.bsize) / 1024 ** 3,
    diskFreeGib: (disk.bavail * disk.bsize) / 1024 ** 3,
    diskOthersGib: Math.max(0, (disk.blocks - disk.bavail) * disk.bsize - ofVms) / 1024 ** 3,
  };
}

/** Bytes taken by the files of a VM's folder and of the folders in it; 0 if it does not exist. */
function takenBy(vmFolder: string, depth = 1): number {
  let bytes = 0;
  try {
    for (const entry of readdirSync(vmFolder, { withFileTypes: true })) {
      const path = join(vmFolder, entry.name);
      if (entry.isFile()) bytes += (statSync(path, { throwIfNoEntry: false })?.blocks ?? 0) * 512;
      else if (entry.isDirectory() && depth > 0) bytes += takenBy(path, depth - 1);
    }
  } catch (error) {
    if (!hasCode(error, 'ENOENT')) throw error;
  }
  return bytes;
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
