// Interface between the host daemon and a VM implementation: verbs and capability flags. A driver
// keeps no state in memory that a new daemon could not read back from the VM's folder and the
// kernel. docs/adding-a-driver.md lists the places that a new driver touches.
import type { EgressDenied, EgressPolicy } from '@berth/protocol/egress.ts';
import type { ProcessIdentity } from '@berth/os/process-identity.ts';
import type { VmDeathCode, VmSpec } from '@berth/protocol/host.ts';

export interface GuestEndpoint {
  address: string;
  port: number;
}

/**
 * The driver's on-disk state of a VM, beside the daemon's; read back by `recover` and `destroy`.
 * JSON.
 */
export type DriverState = Record<string, unknown>;

/** Where the model gateway listens for a VM, and the URL at which its guest reaches it. */
export interface ModelPlace {
  listen: GuestEndpoint;
  url: string;
}

export interface RunningVm {
  process: ProcessIdentity;
  guest: GuestEndpoint;
  models: ModelPlace;
}

export interface DriverCapabilities {
  /** Isolates tenants' code; false only for the fake. */
  isolates: boolean;
  /** Gives each VM a dedicated network. */
  network: boolean;
  /** Adds vCPUs and memory beyond the template's after the restore. */
  hotplug: boolean;
  /**
   * A sleeping VM uses no memory and no CPU, and survives a host reboot. False only for the fake,
   * which stops its processes.
   */
  snapshots: boolean;
}

/** Size of a VM: vCPUs, memory in MiB, disk in GiB. */
export type VmSize = Pick<VmSpec, 'vcpu' | 'memoryMib' | 'diskGib'>;

interface MaybeEncrypted {
  /**
   * Key of an encrypted VM's disk and snapshots: 32 random bytes in base64url, the same for life.
   * Null or absent for a VM in plain text. Rejects if the key cannot be read.
   */
  readDiskKey?(): Promise<string | null>;
}

export interface CreateVm extends MaybeEncrypted {
  id: string;
  /** Absolute path of the VM's folder: made by the caller, private to the VM. */
  folder: string;
  spec: VmSpec;
  /**
   * Called before the driver makes anything that outlives a `kill -9` of the daemon (a process,
   * slot or namespace). The state is durable when it resolves, so that `destroy` finds all of it.
   */
  saveState(state: DriverState): Promise<void>;
  /** Aborted when a destroy overtakes the create, or on its deadline. */
  signal: AbortSignal;
}

/** A VM that exists and was given an identity once. */
export interface ExistingVm {
  id: string;
  folder: string;
  /** The driver's last saved state. */
  state: DriverState;
  signal: AbortSignal;
}

export interface SleepVm extends ExistingVm, MaybeEncrypted {
  /** Exists, is empty and private to the daemon. Receives the snapshot, its manifest last. */
  snapshotFolder: string;
  /** Size in force, for the manifest. */
  size: VmSize;
}

export interface WakeVm extends ExistingVm, MaybeEncrypted {
  /** In force before anything of the VM runs. */
  egress: EgressPolicy;
  snapshotFolder: string;
  /** As in {@link CreateVm}. */
  saveState(state: DriverState): Promise<void>;
  /**
   * Called when everything is loaded and verified, before the VM resumes; the VM resumes only after
   * it resolves. The disk then diverges from the snapshot, which must never be used again.
   */
  beforeContinue(): Promise<void>;
}

export interface BootVm extends ExistingVm, MaybeEncrypted {
  /** As in {@link WakeVm}. */
  egress: EgressPolicy;
  /** As in {@link CreateVm}. */
  saveState(state: DriverState): Promise<void>;
}

/**
 * A restored VM with the devices it was captured with: `size` is the guest's size before any
 * change.
 */
export interface WokenVm extends RunningVm {
  size: VmSize;
}

/** The host kernel's figures of a running VM. */
export interface VmFigures {
  cpuMs: number;
  residentMib: number;
  unsharedMib: number;
  diskUsedMib: number;
  networkInBytes: number;
  networkOutBytes: number;
}

/** Why a process exited. `code` is for programs, `reason` for people. */
export interface VmEnd {
  code: Exclude<VmDeathCode, 'not_created' | 'wake_failed' | 'not_adopted'>;
  reason: string;
  /** Last time it was seen running, in milliseconds since 1970. */
  lastAliveUnixMs: number;
}

/** The last output of a guest's console; `truncated`: it begins in the middle. */
export interface ConsoleOutput {
  text: string;
  truncated: boolean;
}

export interface VmDriver {
  readonly name: 'qemu' | 'fake';
  readonly accelerator: 'kvm' | 'tcg' | 'none';
  readonly capabilities: DriverCapabilities;

  /**
   * Prepares the driver: verifies the template, makes network slots. Throws with a message that
   * names what is missing.
   */
  prepare(): Promise<void>;

  /**
   * Restores a VM without an identity: its process runs, its guest daemon can be dialled and has no
   * secret yet, vCPUs and memory match the spec. Rejects with {@link DriverError}; the caller then
   * calls `destroy`.
   */
  create(vm: CreateVm): Promise<RunningVm>;

  /**
   * Recovers an earlier daemon's VM if its recorded process still runs; null otherwise. Resumes a
   * VM left paused by an interrupted sleep or wake. The rules of the earlier daemon's egress policy
   * stay in force until {@link setEgress}; names are resolved under the given one.
   */
  recover(folder: string, state: DriverState, egress: EgressPolicy): Promise<RunningVm | null>;

  /**
   * Resolves when the process exited. Never rejects; unsubscribes on abort (the value then means
   * nothing).
   */
  exited(process: ProcessIdentity, signal: AbortSignal): Promise<VmEnd>;

  /**
   * Captures memory, devices and disk of the paused VM at one point in time, and ends its process.
   * Resolves, once all of it is durable, with the state that a wake needs. Network resources are
   * released no later than the next wake or destroy. If the manifest could not be completed, the VM
   * keeps running and this rejects with {@link DriverError}. With a complete manifest this may be
   * repeated and finishes the rest ({@link hasSnapshot} reports that after a crash).
   */
  sleep(vm: SleepVm): Promise<DriverState>;

  /** True if the folder holds a snapshot with a complete manifest. Verifies nothing else. */
  hasSnapshot(snapshotFolder: string): Promise<boolean>;

  /**
   * Restores a sleeping VM with its devices and resumes its processes. Rejects with {@link
   * SnapshotUnusable} if the snapshot does not verify or can never be loaded; with {@link
   * NeverContinued} if it was recorded as spent but is not; with {@link DriverError} if a retry may
   * succeed. After any rejection the caller calls `destroy`, which keeps disk and snapshot folder.
   */
  wake(vm: WakeVm): Promise<WokenVm>;

  /**
   * Boots a VM's disk when it has no usable snapshot. Resolves with its size once its guest daemon
   * can be dialled. Memory and vCPUs are the template's, but the maximum of vCPUs where they cannot
   * be hot-plugged (under TCG); the disk keeps its size. Rejects with {@link DriverError}.
   */
  boot(vm: BootVm): Promise<WokenVm>;

  /**
   * Hot-plugs into a running VM what `to` has beyond `from`, and unplugs the surplus. Resolves with
   * the resulting size; below `from` only where the guest released resources in time. Additions are
   * not yet online in the guest. Rejects with {@link DriverError} after unplugging its additions as
   * far as the guest releases them; with {@link ResizeFailed} if it knows the remaining size.
   */
  resize(vm: ExistingVm, from: VmSize, to: VmSize): Promise<VmSize>;

  /**
   * Enforces an egress policy on a running VM, and ends its connections that the policy forbids.
   * May be repeated. If it rejects, new names are resolved under the new policy, and the kernel
   * enforces one of the two.
   */
  setEgress(state: DriverState, egress: EgressPolicy): Promise<void>;

  /** Attempts that the VM's egress policy refused so far; null if none. Reads memory only. */
  egressDenied(state: DriverState): EgressDenied | null;

  /**
   * The last 64 KiB that the guest wrote to its console since its start: of a running VM, or of one
   * whose process exited and that was not destroyed yet. Null if nothing is known. Rejects if the
   * VM does not respond.
   */
  readConsole(folder: string, state: DriverState, signal: AbortSignal): Promise<ConsoleOutput | null>;

  /** The kernel's figures of a running VM. `cpuMs` alone costs almost nothing. */
  figures(folder: string, state: DriverState): Promise<VmFigures>;
  cpuMs(process: ProcessIdentity): number | null;

  /**
   * Ends the process and frees slot, namespace, TAP and files outside the folder. Idempotent, from
   * any half-made state. Leaves the folders to the caller.
   */
  destroy(folder: string, state: DriverState | null): Promise<void>;

  /**
   * Ends this instance's resources on the host that no record names (after a crash between two
   * steps). Returns the reaped resources, for the log.
   */
  reapOrphans(known: ReadonlySet<string>): Promise<string[]>;

  /** Releases what `prepare` took. VMs keep running. */
  close(): Promise<void>;
}

/**
 * A VM could not be started, captured or changed. The message names the step and the observation;
 * operators see it.
 */
export class DriverError extends Error {
  override readonly name: string = 'DriverError';
}

/** A booted guest did not respond. Has the console output of its boot. */
export class SilentBoot extends DriverError {
  override readonly name = 'SilentBoot';
  readonly console: ConsoleOutput | null;

  constructor(message: string, console: ConsoleOutput | null, options?: ErrorOptions) {
    super(message, options);
    this.console = console;
  }
}

/** A wake failed after `beforeContinue` but before the VM resumed: the snapshot is still valid. */
export class NeverContinued extends DriverError {
  override readonly name = 'NeverContinued';
}

/** A snapshot that does not verify or that QEMU cannot load; the disk can still be booted. */
export class SnapshotUnusable extends DriverError {
  override readonly name: string = 'SnapshotUnusable';
}

/**
 * A resize failed. `has` is the resulting size: additions were unplugged as far as the guest
 * released them.
 */
export class ResizeFailed extends DriverError {
  override readonly name = 'ResizeFailed';
  readonly has: VmSize;

  constructor(message: string, has: VmSize, cause: unknown) {
    super(message, { cause });
    this.has = has;
  }
}
