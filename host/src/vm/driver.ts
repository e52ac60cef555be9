// The one interface between the host daemon and whatever runs a VM. Verbs, and flags that say what
// a driver can do. A driver keeps no state of its own in memory that a new daemon could not read
// back from the VM's folder and from the kernel.
import type { ProcessIdentity } from '@berth/os/process-identity.ts';
import type { VmDeathCode, VmSpec } from '@berth/protocol/host.ts';

/** How the host daemon dials the guest daemon of one VM. */
export interface GuestEndpoint {
  address: string;
  port: number;
}

/**
 * What a driver keeps of a VM on disk, beside what the daemon keeps; read back by `recover` and
 * `destroy`. JSON.
 */
export type DriverState = Record<string, unknown>;

export interface RunningVm {
  process: ProcessIdentity;
  guest: GuestEndpoint;
}

export interface DriverCapabilities {
  /** Runs tenants' code in isolation; false only for the fake. */
  isolates: boolean;
  /** Reaches the outside through a network of its own. */
  network: boolean;
  /** vCPUs and memory beyond the template's are added after the restore. */
  hotplug: boolean;
  /**
   * A sleeping machine takes no memory and no processor, and survives the machine it is on. False
   * only for the fake, which stops its processes.
   */
  snapshots: boolean;
}

/** Size of a machine: vCPUs, memory in MiB, disk in GiB. */
export type VmSize = Pick<VmSpec, 'vcpu' | 'memoryMib' | 'diskGib'>;

export interface CreateVm {
  id: string;
  /** Absolute path of the VM's folder: made by the caller, private to the VM. */
  folder: string;
  spec: VmSpec;
  /**
   * Called before anything is made that outlives a `kill -9` of the daemon (a process, a slot, a
   * namespace): the state is on disk, durably, when this resolves, so that `destroy` finds all of
   * it.
   */
  saveState(state: DriverState): Promise<void>;
  /** Aborted when a destroy overtakes the create, or its deadline passed. */
  signal: AbortSignal;
}

/** A machine that exists and was given an identity once. */
export interface ExistingVm {
  id: string;
  folder: string;
  /** As the driver saved it last. */
  state: DriverState;
  signal: AbortSignal;
}

export interface SleepVm extends ExistingVm {
  /** Exists, is empty and private to the daemon: what is captured goes there, its manifest last. */
  snapshotFolder: string;
  /** Size in force, for the manifest. */
  size: VmSize;
}

export interface WakeVm extends ExistingVm {
  snapshotFolder: string;
  /** As in {@link CreateVm}. */
  saveState(state: DriverState): Promise<void>;
  /**
   * Called when everything is loaded and verified and the machine is about to run: from then on its
   * disk parts from the snapshot, which must never be used again. The machine runs only after this
   * resolved.
   */
  beforeContinue(): Promise<void>;
}

export interface BootVm extends ExistingVm {
  /** As in {@link CreateVm}. */
  saveState(state: DriverState): Promise<void>;
}

/**
 * Which devices a captured machine had, and so has again: `size` is what its guest sees before
 * anything is added or taken away.
 */
export interface WokenVm extends RunningVm {
  size: VmSize;
}

/** What the host's kernel says of a running machine. */
export interface VmFigures {
  cpuMs: number;
  residentMib: number;
  unsharedMib: number;
  diskUsedMib: number;
  networkInBytes: number;
  networkOutBytes: number;
}

/** Why a process ended. `code` is for programs, `reason` for people. */
export interface VmEnd {
  code: Exclude<VmDeathCode, 'not_created' | 'wake_failed' | 'not_adopted'>;
  reason: string;
  /** When it was last seen to run, in milliseconds since 1970. */
  lastAliveUnixMs: number;
}

export interface VmDriver {
  readonly name: 'qemu' | 'fake';
  readonly accelerator: 'kvm' | 'tcg' | 'none';
  readonly capabilities: DriverCapabilities;

  /**
   * Makes the driver ready: verified template, network slots ahead of time. Throws with a message
   * that says what is missing.
   */
  prepare(): Promise<void>;

  /**
   * Restores a machine without an identity: its process runs, its guest daemon can be dialled and
   * has no secret yet, its vCPUs and memory are those of the spec. Rejects with {@link
   * DriverError}; the caller then calls `destroy`.
   */
  create(vm: CreateVm): Promise<RunningVm>;

  /**
   * The VM of an earlier daemon, when its process still runs and is the recorded one; null
   * otherwise. One that stands still (a sleep or wake cut short) goes on.
   */
  recover(folder: string, state: DriverState): Promise<RunningVm | null>;

  /**
   * Resolves when the process is gone. Never rejects; unsubscribes when the signal aborts (the
   * value then means nothing).
   */
  exited(process: ProcessIdentity, signal: AbortSignal): Promise<VmEnd>;

  /**
   * Captures memory, devices and disk in one moment at which the machine stands still and ends its
   * process. All of it is durable when this resolves with the state that a wake needs; what the
   * machine had of the network is freed at latest when it is woken or destroyed. When the manifest
   * could not be completed the machine runs on and this rejects with {@link DriverError}; once it
   * is complete, this may be repeated and finishes the rest ({@link hasSnapshot} says so after a
   * crash).
   */
  sleep(vm: SleepVm): Promise<DriverState>;

  /** Whether the folder holds a snapshot whose manifest was completed. Verifies nothing else. */
  hasSnapshot(snapshotFolder: string): Promise<boolean>;

  /**
   * Restores a sleeping machine with the devices it had, so that its processes go on. Rejects with
   * {@link SnapshotUnusable} when the snapshot does not verify or cannot be loaded, now or later;
   * with {@link NeverContinued} when it was called spent and is not; with {@link DriverError} when
   * it may work the next time. In any case of rejection the caller calls `destroy`, which leaves
   * disk and snapshot folder alone.
   */
  wake(vm: WakeVm): Promise<WokenVm>;

  /**
   * Boots a machine's disk when there is no snapshot to wake it from. Resolves when its guest
   * daemon can be dialled, with the size it has: the template's memory and vCPUs, but as many vCPUs
   * as a machine may ever have where those cannot be plugged in later (under TCG), and the disk as
   * large as it had become. Rejects with {@link DriverError}.
   */
  boot(vm: BootVm): Promise<WokenVm>;

  /**
   * Plugs what `to` has more than `from` into a running machine, and takes away what it has less.
   * Resolves with the size the machine then has; less than `from` only where the guest let go of it
   * in time. What is more is not yet online in the guest. Rejects with {@link DriverError},
   * everything it had plugged in taken away again if the guest lets go of it; with {@link
   * ResizeFailed} when it knows what is left.
   */
  resize(vm: ExistingVm, from: VmSize, to: VmSize): Promise<VmSize>;

  /** What the kernel says of a running machine. `cpuMs` alone costs next to nothing. */
  figures(folder: string, state: DriverState): Promise<VmFigures>;
  cpuMs(process: ProcessIdentity): number | null;

  /**
   * Ends the process and frees slot, namespace, TAP and files outside the folder. Idempotent, from
   * any half-made state. Leaves the folders to the caller.
   */
  destroy(folder: string, state: DriverState | null): Promise<void>;

  /**
   * Ends what this daemon's instance owns on the machine but no record names (a crash between two
   * steps). Returns what it reaped, for the log.
   */
  reapOrphans(known: ReadonlySet<string>): Promise<string[]>;

  /** Gives back what `prepare` took. VMs go on running. */
  close(): Promise<void>;
}

/**
 * A VM could not be brought up, captured or changed. The message names the step and what was seen;
 * it is shown to the operator.
 */
export class DriverError extends Error {
  override readonly name: string = 'DriverError';
}

/**
 * A wake failed after `beforeContinue` and before its machine was let run: the snapshot is as good
 * as it was.
 */
export class NeverContinued extends DriverError {
  override readonly name = 'NeverContinued';
}

/** A snapshot does not verify, or QEMU cannot load it: the disk can still be booted. */
export class SnapshotUnusable extends DriverError {
  override readonly name: string = 'SnapshotUnusable';
}

/**
 * A machine was not brought to a size. `has` is the one it has then: what it was given meanwhile
 * was taken away again as far as its guest let go of it.
 */
export class ResizeFailed extends DriverError {
  override readonly name = 'ResizeFailed';
  readonly has: VmSize;

  constructor(message: string, has: VmSize, cause: unknown) {
    super(message, { cause });
    this.has = has;
  }
}
