// The one interface between the host daemon and whatever runs a VM. Verbs, and flags that say what a driver can do.
// A driver keeps no state of its own in memory that a new daemon could not read back from the VM's folder and from the kernel.
import type { VmSpec } from '@berth/protocol/host.ts';

/** Where a running VM is and how to tell that it is still the same one. Written to the VM's folder as part of its record. */
export interface VmProcess {
  pid: number;
  /** Field 22 of /proc/PID/stat, in clock ticks since boot: a reused pid has another one. */
  startTicks: string;
  /** /proc/sys/kernel/random/boot_id */
  bootId: string;
}

/** How the host daemon dials the guest daemon of one VM. */
export interface GuestEndpoint {
  address: string;
  port: number;
}

/** What a driver keeps of a VM on disk, beside what the daemon keeps; read back by `recover` and `destroy`. JSON. */
export type DriverState = Record<string, unknown>;

export interface RunningVm {
  process: VmProcess;
  guest: GuestEndpoint;
}

export interface DriverCapabilities {
  /** Runs tenants' code in isolation; false only for the fake. */
  isolates: boolean;
  /** Reaches the outside through a network of its own. */
  network: boolean;
  /** vCPUs and memory beyond the template's are added after the restore. */
  hotplug: boolean;
}

export interface CreateVm {
  id: string;
  /** Absolute path of the VM's folder: made by the caller, private to the VM. */
  folder: string;
  spec: VmSpec;
  /**
   * Called before anything is made that outlives a `kill -9` of the daemon (a process, a slot, a namespace): the state is on disk, durably, when
   * this resolves, so that `destroy` finds all of it.
   */
  saveState(state: DriverState): Promise<void>;
  /** Aborted when a destroy overtakes the create, or its deadline passed. */
  signal: AbortSignal;
}

export interface VmDriver {
  readonly name: 'qemu' | 'fake';
  readonly accelerator: 'kvm' | 'tcg' | 'none';
  readonly capabilities: DriverCapabilities;

  /** Makes the driver ready: verified template, network slots ahead of time. Throws with a message that says what is missing. */
  prepare(): Promise<void>;

  /**
   * Restores a machine without an identity: its process runs, its guest daemon can be dialled and has no secret yet, its vCPUs and memory are
   * those of the spec. Rejects with {@link DriverError}; the caller then calls `destroy`.
   */
  create(vm: CreateVm): Promise<RunningVm>;

  /** The VM of an earlier daemon, when its process still runs and is the recorded one; null otherwise. */
  recover(folder: string, state: DriverState): Promise<RunningVm | null>;

  /** Resolves with a reason when the process is gone. Never rejects; unsubscribes when the signal aborts. */
  exited(process: VmProcess, signal: AbortSignal): Promise<string>;

  /** Ends the process and frees slot, namespace, TAP and files outside the folder. Idempotent, from any half-made state. Leaves the folder to the caller. */
  destroy(folder: string, state: DriverState | null): Promise<void>;

  /** Ends what this daemon's instance owns on the machine but no record names (a crash between two steps). Returns what it reaped, for the log. */
  reapOrphans(known: ReadonlySet<string>): Promise<string[]>;

  /** Gives back what `prepare` took. VMs go on running. */
  close(): Promise<void>;
}

/** A VM could not be brought up. The message names the step and what was seen; it is shown to the operator. */
export class DriverError extends Error {
  override readonly name = 'DriverError';
}
