// Whether one more VM fits on this machine: pure arithmetic over what is promised already, and the
// reading of the machine's own figures. Must not know how VMs are made; a refusal is typed
// (`Shortage`), so that a caller can say what is missing and how much there is.
import { readFileSync, statfsSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import type { Shortage } from './host-error.ts';

export interface Amounts {
  vcpu: number;
  memoryMib: number;
  diskGib: number;
}

export interface MachineFigures {
  cores: number;
  memTotalMib: number;
  memAvailableMib: number;
  /** Of the file system that holds the data folder. */
  diskTotalGib: number;
  diskFreeGib: number;
}

export interface AdmissionPolicy {
  /** vCPUs promised per core: sandboxes are idle most of the time. */
  cpuOvercommit: number;
  /**
   * How often the memory that is left for VMs is promised: guests touch little of theirs. What the
   * kernel has available bounds it all the same.
   */
  memoryOvercommit: number;
  /** Kept for the system, the control plane and the page cache of the template. */
  memoryReserveMib: number;
  /** What a VM costs beyond its own memory: QEMU itself and, under TCG, its translation buffer. */
  vmOverheadMib: number;
  /** Disks are sparse files: how often the file system's size is promised. */
  diskOvercommit: number;
  diskReserveGib: number;
}

/** Memory of the template's machine: no VM has less. */
const SMALLEST_VM_MIB = 1_024;

/** What one VM holds of the machine. */
export interface HeldVm {
  /**
   * `growing`: it was let in and does not use its memory yet. `using`: it runs. `added`: what one
   * that runs is about to get on top, and does not use yet. `disk`: only its disk is left.
   */
  holds: 'growing' | 'using' | 'added' | 'disk';
  size: Amounts;
}

/**
 * What the control plane may hand out, in guests' memory: less each VM's overhead if all of them
 * were of the smallest size. Whoever keeps the sum of guests' memory within this is never refused
 * here for memory that was promised.
 */
export function offerOf(machine: MachineFigures, policy: AdmissionPolicy): Amounts {
  const capacity = capacityOf(machine, policy);
  const share = SMALLEST_VM_MIB / (SMALLEST_VM_MIB + policy.vmOverheadMib);
  return { ...capacity, memoryMib: Math.floor(capacity.memoryMib * share) };
}

/**
 * The most that one VM can have of an empty machine, as far as its driver goes. Memory is the
 * guest's.
 */
export function largestOf(machine: MachineFigures, policy: AdmissionPolicy, driver: Amounts): Amounts {
  const { vcpu, memoryMib, diskGib } = capacityOf(machine, policy);
  return {
    vcpu: Math.min(vcpu, driver.vcpu),
    memoryMib: Math.max(0, Math.min(memoryMib - policy.vmOverheadMib, driver.memoryMib)),
    diskGib: Math.min(diskGib, driver.diskGib),
  };
}

/** What may be promised to VMs in all, their overhead included. */
export function capacityOf(machine: MachineFigures, policy: AdmissionPolicy): Amounts {
  return {
    vcpu: Math.floor(machine.cores * policy.cpuOvercommit),
    memoryMib: Math.max(0, Math.floor((machine.memTotalMib - policy.memoryReserveMib) * policy.memoryOvercommit)),
    diskGib: Math.max(0, Math.floor((machine.diskTotalGib - policy.diskReserveGib) * policy.diskOvercommit)),
  };
}

/** What is promised, the overhead of each VM's process included. */
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
 * Null when it fits; otherwise the first resource that is short. Amounts of memory are the guest's,
 * without overhead. `what` is wanted: another machine, or something on top of one that runs.
 */
export function shortageFor(
  wanted: Amounts,
  held: readonly HeldVm[],
  machine: MachineFigures,
  policy: AdmissionPolicy,
  what: 'machine' | 'added' = 'machine',
): Shortage | null {
  const capacity = capacityOf(machine, policy);
  const promised = promisedTo(held, policy);
  // Those let in a moment ago will use memory that the kernel still calls available.
  const growingMib = promisedTo(
    held.filter((vm) => vm.holds === 'growing' || vm.holds === 'added'),
    policy,
  ).memoryMib;
  const overheadMib = what === 'machine' ? policy.vmOverheadMib : 0;
  const available: Amounts = {
    vcpu: capacity.vcpu - promised.vcpu,
    memoryMib: Math.min(capacity.memoryMib - promised.memoryMib, machine.memAvailableMib - growingMib) - overheadMib,
    diskGib: machine.diskFreeGib <= policy.diskReserveGib ? 0 : capacity.diskGib - promised.diskGib,
  };
  for (const resource of ['vcpu', 'memoryMib', 'diskGib'] as const) {
    // Nothing wanted is nothing short, also of a machine that promised too much under another
    // policy.
    if (wanted[resource] > 0 && wanted[resource] > available[resource])
      return { resource, requested: wanted[resource], available: Math.max(0, Math.floor(available[resource])) };
  }
  return null;
}

/**
 * The machine's figures now. Synchronous on purpose: between this look and the promise nothing else
 * may be let in.
 */
export function readMachine(dataFolder: string): MachineFigures {
  const memory = parseMeminfo(readFileSync('/proc/meminfo', 'latin1'));
  const disk = statfsSync(dataFolder);
  return {
    cores: availableParallelism(),
    ...memory,
    diskTotalGib: (disk.blocks * disk.bsize) / 1024 ** 3,
    diskFreeGib: (disk.bavail * disk.bsize) / 1024 ** 3,
  };
}

/** Throws when a line is missing: without these figures nothing may be let in. */
export function parseMeminfo(text: string): Pick<MachineFigures, 'memTotalMib' | 'memAvailableMib'> {
  const kib = (name: string): number => {
    const match = new RegExp(`^${name}:\\s+(\\d+) kB$`, 'm').exec(text);
    if (match === null) throw new Error(`/proc/meminfo has no line ${name}`);

    return Number(match[1]);
  };
  return { memTotalMib: Math.floor(kib('MemTotal') / 1024), memAvailableMib: Math.floor(kib('MemAvailable') / 1024) };
}
