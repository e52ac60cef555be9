// Control groups (cgroup v2) of VMs: what the kernel lets each QEMU take of CPU, memory, processes
// and disk, whatever runs in it. A group is made before its QEMU, which starts inside.
//
//   VMS/            made by the supervisor, with the controllers for the groups below
//   VMS/VM-ID/      one QEMU
import { mkdir, readdir, readFile, rmdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { hasCode, nullIf } from '@berth/os/errors.ts';
import type { VmSize } from '../../driver.ts';

type GroupSize = Pick<VmSize, 'vcpu' | 'memoryMib'>;

const MIB = 2 ** 20;
const PERIOD_US = 100_000;
/** CPU time for QEMU's own threads: disk, network, snapshots. */
const OWN_VCPU = 0.5;
const WEIGHT_PER_VCPU = 100;
/**
 * QEMU's own memory, page tables, socket buffers and device state (64 MiB in memory if encrypted).
 * Cached pages of its files count too; the kernel drops them first.
 */
const OWN_MIB = 512;
/** Without KVM also the translation buffer (machine.ts). */
const TRANSLATION_MIB = 512;
/** QEMU has about ten threads, and up to 64 more for its disk; bwrap has two processes. */
const TASKS = 256;
/** Time for the last thread of an ended QEMU to leave its group. */
const EMPTY_DEADLINE_MS = 2_000;
const EMPTY_STEP_MS = 5;

export class VmCgroups {
  readonly #folder: string | null;
  #controllers: readonly string[] = [];

  /** @param folder the parent of the groups; null where the host has none: VMs have no limits */
  constructor(folder: string | null) {
    this.#folder = folder;
  }

  /** Removes the groups of VMs that ended while no daemon ran. */
  async prepare(): Promise<void> {
    if (this.#folder === null) return;

    const enabled = await readFile(join(this.#folder, 'cgroup.subtree_control'), 'latin1');
    this.#controllers = enabled.trim().split(' ');
    const entries = await readdir(this.#folder, { withFileTypes: true });
    for (const entry of entries) if (entry.isDirectory()) await removeIfEmpty(join(this.#folder, entry.name));
  }

  /** Makes the group of a VM, or sets its limits anew. Resolves with its folder. */
  async make(vmId: string, size: GroupSize, kvm: boolean): Promise<string | null> {
    const group = this.#of(vmId);
    if (group === null) return null;

    await mkdir(group).catch(nullIf('EEXIST'));
    await this.#set(group, size, kvm);
    return group;
  }

  /** Limits of a running VM. A VM of a daemon without groups keeps none. */
  async resize(vmId: string, size: GroupSize, kvm: boolean): Promise<void> {
    const group = this.#of(vmId);
    if (group !== null) await this.#set(group, size, kvm).catch(nullIf('ENOENT'));
  }

  /** Memory that had run out when the kernel killed the VM: its own, or the host's. */
  async outOfMemory(vmId: string): Promise<'vm' | 'host' | 'none' | 'unknown'> {
    const group = this.#of(vmId);
    const events = group === null ? null : await readFile(join(group, 'memory.events'), 'latin1').catch(absent);
    if (events === null) return 'unknown';
    if (/^oom_kill 0$/m.test(events)) return 'none';
    return /^oom 0$/m.test(events) ? 'host' : 'vm';
  }

  /** Removes the group of an ended VM, with all that still runs in it. */
  async remove(vmId: string): Promise<void> {
    const group = this.#of(vmId);
    if (group === null) return;

    await writeFile(join(group, 'cgroup.kill'), '1').catch(absent);
    const deadline = performance.now() + EMPTY_DEADLINE_MS;
    while (!(await removeIfEmpty(group)) && performance.now() < deadline) await delay(EMPTY_STEP_MS);
  }

  async #set(group: string, size: GroupSize, kvm: boolean): Promise<void> {
    const written = Object.entries(limitsOf(size, kvm))
      .filter(([file]) => this.#controllers.includes(file.split('.')[0] ?? ''))
      .map(([file, value]) => {
        // Weights of disks need a scheduler that the kernel may lack.
        const tolerated = file === 'io.weight' ? ['ENOENT', 'EOPNOTSUPP'] : [];
        return writeFile(join(group, file), value, { flag: 'r+' }).catch(nullIf(...tolerated));
      });
    await Promise.all(written);
  }

  #of(vmId: string): string | null {
    return this.#folder === null ? null : join(this.#folder, vmId);
  }
}

/** Limits by file. Pure; exported for its test. */
export function limitsOf({ vcpu, memoryMib }: GroupSize, kvm: boolean): Record<string, string> {
  return {
    'cpu.weight': String(vcpu * WEIGHT_PER_VCPU),
    'cpu.max': `${(vcpu + OWN_VCPU) * PERIOD_US} ${PERIOD_US}`,
    'memory.max': String((memoryMib + OWN_MIB + (kvm ? 0 : TRANSLATION_MIB)) * MIB),
    'memory.oom.group': '1',
    'pids.max': String(TASKS),
    'io.weight': String(vcpu * WEIGHT_PER_VCPU),
  };
}

const absent = nullIf('ENOENT', 'ENODEV');

/** False if processes are left in it. */
async function removeIfEmpty(group: string): Promise<boolean> {
  try {
    await rmdir(group);
  } catch (error) {
    if (hasCode(error, 'EBUSY')) return false;
    if (!hasCode(error, 'ENOENT')) throw error;
  }
  return true;
}
