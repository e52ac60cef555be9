// The driver under test and its VMs: created, given an identity, called and destroyed as by the
// daemon. Asserts nothing itself.
import { OPEN_EGRESS } from '@berth/protocol/egress.ts';
import { randomBytes } from 'node:crypto';
import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { exec as execCall, type GuestExecResult } from '@berth/protocol/calls/exec.ts';
import type { GuestIdentityResult } from '@berth/protocol/calls/identity.ts';
import type { VmSpec } from '@berth/protocol/host.ts';
import { DirectGuestClient, type GuestClient } from '../../guest/client.ts';
import { sendIdentity, sendWake, makeGuestSecret, makeIdentity, type Identity } from '../../guest/identity.ts';
import type { DriverState, ExistingVm, RunningVm, VmDriver, VmSize, WakeVm, WokenVm } from '../driver.ts';

/** Long, because an emulated guest shares two cores with the rest of a test host. */
const CREATE_DEADLINE_MS = 120_000;
const BOOT_DEADLINE_MS = 400_000;

export interface ConformanceOptions {
  spec: VmSpec;
  /** Sizes larger than the template; empty for a driver without hotplug. */
  biggerSpecs: readonly VmSpec[];
  /**
   * Remaining host resources of the driver's installation, one sentence each. Empty without VMs and
   * with the driver closed.
   */
  leftovers(): Promise<string[]>;
  /** Null for a driver without a network. */
  uplink: ConformanceUplink | null;
  /** Deadline of `prepare` in milliseconds: it may have to boot a template. */
  prepareDeadlineMs: number;
}

export interface Target {
  address: string;
  port: number;
}

/** A network around the host with known listeners: the host reaches every target. */
export interface ConformanceUplink {
  internet: readonly Target[];
  /** Private, link-local, metadata and shared ranges, and the host's own addresses. */
  closed: readonly Target[];
  closedIpv6: readonly Target[];
  /** A name that only the guest's resolver resolves, and its address. */
  name: { name: string; address: string };
  /** Targets that respond to the host itself. */
  answering(targets: readonly Target[]): Promise<Target[]>;
}

export interface SubjectVm {
  id: string;
  folder: string;
  /** Every state saved by the driver, in order. */
  saved: DriverState[];
  running: RunningVm;
  client: GuestClient;
  identity: Identity;
  readBack: GuestIdentityResult;
}

/** An installation of the driver, through successive instances. */
export class Subject {
  readonly #makeDriver: () => VmDriver;
  readonly #root: string;
  readonly #vms = new Map<string, SubjectVm>();
  driver: VmDriver;

  private constructor(makeDriver: () => VmDriver, root: string, driver: VmDriver) {
    this.#makeDriver = makeDriver;
    this.#root = root;
    this.driver = driver;
  }

  static async prepare(makeDriver: () => VmDriver): Promise<Subject> {
    const driver = makeDriver();
    await driver.prepare();
    return new Subject(makeDriver, await mkdtemp(join(tmpdir(), 'berth-conformance-')), driver);
  }

  async replaceDriver(): Promise<void> {
    await this.driver.close();
    this.driver = this.#makeDriver();
    await this.driver.prepare();
  }

  async makeFolder(): Promise<{ id: string; folder: string }> {
    const letters = Array.from(randomBytes(24), (byte) => 'abcdefghijklmnopqrstuvwxyz234567'.charAt(byte & 31));
    const id = `sbx_${letters.join('')}`;
    const folder = join(this.#root, id, 'vm');
    await mkdir(folder, { recursive: true, mode: 0o700 });
    return { id, folder };
  }

  async create(spec: VmSpec): Promise<SubjectVm> {
    const { id, folder } = await this.makeFolder();
    const saved: DriverState[] = [];
    const signal = AbortSignal.timeout(CREATE_DEADLINE_MS);
    const running = await this.driver.create({
      id,
      folder,
      spec,
      signal,
      // Through JSON, as on disk.
      saveState: async (state) => void saved.push(JSON.parse(JSON.stringify(state)) as DriverState),
    });
    const identity = makeIdentity(spec, makeGuestSecret());
    const client = new DirectGuestClient(running.guest);
    const vm = { id, folder, saved, running, client, identity };
    try {
      const readBack = await sendIdentity(client, identity, signal, CREATE_DEADLINE_MS);
      const made = { ...vm, readBack };
      this.#vms.set(id, made);
      return made;
    } catch (error) {
      await this.destroy(vm);
      throw error;
    }
  }

  existing(vm: Omit<SubjectVm, 'readBack'>, signal: AbortSignal = AbortSignal.timeout(CREATE_DEADLINE_MS)): ExistingVm {
    return { id: vm.id, folder: vm.folder, state: vm.saved.at(-1) ?? {}, signal };
  }

  /** Puts a VM to sleep, with the snapshot beside its folder. */
  async sleep(vm: SubjectVm, size: VmSize, signal?: AbortSignal): Promise<void> {
    const snapshotFolder = snapshotFolderOf(vm);
    await rm(snapshotFolder, { recursive: true, force: true });
    await mkdir(snapshotFolder, { mode: 0o700 });
    vm.saved.push(await this.driver.sleep({ ...this.existing(vm, signal), snapshotFolder, size }));
    vm.client.close();
  }

  /**
   * Wakes the VM and gives it a fresh secret at its restored size, as the daemon does. Removes the
   * snapshot.
   */
  async wake(
    vm: SubjectVm,
    steps: Partial<Pick<WakeVm, 'egress' | 'saveState' | 'beforeContinue' | 'signal'>> = {},
  ): Promise<VmSize> {
    const snapshotFolder = snapshotFolderOf(vm);
    const saveState = async (state: DriverState): Promise<void> => void vm.saved.push(state);
    const woken = await this.driver.wake({
      ...this.existing(vm),
      snapshotFolder,
      egress: OPEN_EGRESS,
      saveState,
      beforeContinue: async () => {},
      ...steps,
    });
    await this.#claim(vm, woken);
    await rm(snapshotFolder, { recursive: true });
    return woken.size;
  }

  /** Boots the VM's disk after its process was ended and freed. */
  async boot(
    vm: SubjectVm,
    saveState = async (state: DriverState): Promise<void> => void vm.saved.push(state),
  ): Promise<VmSize> {
    const existing = this.existing(vm, AbortSignal.timeout(BOOT_DEADLINE_MS));
    const woken = await this.driver.boot({ ...existing, egress: OPEN_EGRESS, saveState });
    await this.#claim(vm, woken);
    return woken.size;
  }

  async #claim(vm: SubjectVm, woken: WokenVm): Promise<void> {
    vm.client.close();
    vm.running = { process: woken.process, guest: woken.guest, models: woken.models };
    vm.client = new DirectGuestClient(woken.guest);
    const fresh = makeGuestSecret();
    const secrets = { fresh, former: [vm.identity.secret] };
    await sendWake(vm.client, secrets, woken.size, AbortSignal.timeout(CREATE_DEADLINE_MS), CREATE_DEADLINE_MS);
    vm.identity = { ...vm.identity, secret: fresh };
  }

  async destroy(vm: Omit<SubjectVm, 'readBack'>): Promise<void> {
    vm.client.close();
    await this.driver.destroy(vm.folder, vm.saved.at(-1) ?? null);
    await rm(vm.folder, { recursive: true });
    await rm(snapshotFolderOf(vm), { recursive: true, force: true });
    this.#vms.delete(vm.id);
  }

  /** Destroys remaining VMs, closes the driver and removes the folder. */
  async close(): Promise<void> {
    for (const vm of this.#vms.values()) await this.destroy(vm);

    await this.driver.close();
    await rm(this.#root, { recursive: true });
  }
}

/** Snapshot folder used by {@link Subject.sleep}. */
export function snapshotFolderOf(vm: Pick<SubjectVm, 'folder'>): string {
  return join(dirname(vm.folder), 'snapshot');
}

export async function exec(client: GuestClient, command: string, timeoutSeconds = 60): Promise<GuestExecResult> {
  return client.call(execCall, { body: { command, timeoutSeconds } });
}

/** Output of a command that must succeed. */
export async function outputOf(client: GuestClient, command: string, timeoutSeconds?: number): Promise<string> {
  const { exitCode, stdout, stderr } = await exec(client, command, timeoutSeconds);
  if (exitCode !== 0) throw new Error(`'${command}' ended with ${exitCode}: ${stderr}${stdout}`);

  return stdout.trim();
}
