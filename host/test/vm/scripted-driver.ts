// A driver whose "processes" are scripted guests in the test process: each verb can be held, failed
// or killed at will. Counts the host resources it would hold; like processes, they outlive an
// instance of the driver.
import { OPEN_EGRESS, type EgressDenied, type EgressPolicy } from '@berth/protocol/egress.ts';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import {
  DriverError,
  SnapshotUnusable,
  type BootVm,
  type ConsoleOutput,
  type CreateVm,
  type DriverState,
  type ExistingVm,
  type RunningVm,
  type SleepVm,
  type VmDriver,
  type VmEnd,
  type VmFigures,
  type VmSize,
  type WakeVm,
  type WokenVm,
} from '../../src/vm/driver.ts';
import { readIfPresent } from '@berth/os/durable-file.ts';
import type { ProcessIdentity } from '@berth/os/process-identity.ts';
import { ScriptedGuest } from './scripted-guest.ts';

export const BOOT_SIZE: VmSize = { vcpu: 1, memoryMib: 1_024, diskGib: 10 };
/** The last file written into a snapshot's folder. */
export const MANIFEST = 'manifest.json';

export interface ScriptedVm {
  id: string;
  guest: ScriptedGuest;
  size: VmSize;
  egress: EgressPolicy;
  denied: EgressDenied | null;
  exited: PromiseWithResolvers<VmEnd>;
}

/** The host shared by successive instances of the driver. */
export class ScriptedHost {
  readonly running = new Map<number, ScriptedVm>();
  nextPid = 1_000;

  /** Simulates `kill -9` of the VM's process. */
  async kill(id: string, reason = 'ended by signal 9', code: VmEnd['code'] = 'qemu_crash'): Promise<void> {
    for (const [pid, vm] of this.running)
      if (vm.id === id) await this.end(pid, { code, reason, lastAliveUnixMs: Date.now() });
  }

  async end(pid: number, end: VmEnd): Promise<void> {
    const vm = this.running.get(pid);
    this.running.delete(pid);
    await vm?.guest.stop();
    vm?.exited.resolve(end);
  }

  of(id: string): ScriptedVm[] {
    return [...this.running.values()].filter((vm) => vm.id === id);
  }

  async stop(): Promise<void> {
    for (const { id } of this.running.values()) await this.kill(id);
  }
}

export class ScriptedDriver implements VmDriver {
  readonly name = 'fake';
  readonly accelerator = 'none';
  readonly capabilities = { isolates: false, network: false, hotplug: true, snapshots: true };
  readonly machine: ScriptedHost;
  /** Called in each create once its state is saved; a throw fails it. */
  onCreate: (vm: CreateVm) => Promise<void> = async () => {};
  /** Called for each guest before it is handed over. */
  onGuest: (guest: ScriptedGuest) => void = () => {};
  /** Called in each destroy; a throw fails it. */
  onDestroy: (state: DriverState | null) => Promise<void> = async () => {};
  /** Called in each recover; a throw fails it. */
  onRecover: () => Promise<void> = async () => {};
  /** Called in each sleep while the VM is paused; a throw fails it, and the VM resumes. */
  onSleep: (vm: SleepVm) => Promise<void> = async () => {};
  /** Called in each sleep once the snapshot is complete; a throw leaves the VM to be ended. */
  onSlept: () => Promise<void> = async () => {};
  /** Called in each wake when all is loaded; a throw fails it. */
  onWake: (vm: WakeVm) => Promise<void> = async () => {};
  /** Called in each wake between the spent mark and the run of the VM; a throw fails it. */
  onContinue: (vm: WakeVm) => Promise<void> = async () => {};
  /** Called in each boot once its state is saved; a throw fails it. */
  onBoot: (vm: BootVm) => Promise<void> = async () => {};
  /** Called in each resize; returns the VM's resulting size. */
  onResize: (from: VmSize, to: VmSize, vm: ExistingVm) => Promise<VmSize> = async (_from, to) => to;
  /** Called in each change of the egress policy; a throw fails it. */
  onEgress: (egress: EgressPolicy) => Promise<void> = async () => {};
  /** Called in each read of a console, with the pid of the VM. */
  onConsole: (pid: number) => Promise<ConsoleOutput | null> = async () => null;
  /** Set when its daemon was killed: it gets no more events. */
  killed = false;
  /** Memory of each VM in its figures. */
  unsharedMib = 10;
  readonly reapedWith: string[][] = [];
  readonly resizes: [VmSize, VmSize][] = [];
  creates = 0;
  destroys = 0;
  recovers = 0;
  sleeps = 0;
  wakes = 0;
  boots = 0;

  constructor(machine: ScriptedHost) {
    this.machine = machine;
  }

  async prepare(): Promise<void> {}

  async create(vm: CreateVm): Promise<RunningVm> {
    this.creates += 1;
    const pid = this.machine.nextPid++;
    await vm.saveState({ pid, id: vm.id });
    await writeFile(join(vm.folder, 'disk'), 'disk');
    await this.onCreate(vm);
    vm.signal.throwIfAborted();
    return this.#run(pid, vm.id, await ScriptedGuest.start(), vm.spec, vm.spec.egress);
  }

  async setEgress(state: DriverState, egress: EgressPolicy): Promise<void> {
    await this.onEgress(egress);
    this.#of(Number(state['pid'])).egress = egress;
  }

  async recover(_folder: string, state: DriverState): Promise<RunningVm | null> {
    this.recovers += 1;
    await this.onRecover();
    const pid = Number(state['pid']);
    const vm = this.machine.running.get(pid);
    return vm === undefined ? null : { process: processOf(pid), ...placesOf(vm.guest) };
  }

  async exited(process: ProcessIdentity, signal: AbortSignal): Promise<VmEnd> {
    const aborted = new Promise<VmEnd>((resolve) => {
      signal.addEventListener('abort', () => resolve(endOf('no longer watched')), { once: true });
    });
    const why = await Promise.race([
      aborted,
      this.machine.running.get(process.pid)?.exited.promise ?? endOf('gone before it was watched'),
    ]);
    return this.killed ? new Promise<never>(() => {}) : why;
  }

  async sleep(vm: SleepVm): Promise<DriverState> {
    this.sleeps += 1;
    const pid = Number(vm.state['pid']);
    if (!(await this.hasSnapshot(vm.snapshotFolder))) {
      const { guest, size } = this.#of(pid);
      await this.onSleep(vm);
      vm.signal.throwIfAborted();
      await writeFile(join(vm.snapshotFolder, MANIFEST), JSON.stringify({ secret: guest.secret, size }));
    }
    await this.onSlept();
    await this.machine.end(pid, endOf('it sleeps'));
    return { slept: pid, id: vm.id };
  }

  async hasSnapshot(snapshotFolder: string): Promise<boolean> {
    return (await manifestIn(snapshotFolder)) !== null;
  }

  async wake(vm: WakeVm): Promise<WokenVm> {
    this.wakes += 1;
    if (typeof vm.state['slept'] !== 'number') throw new DriverError('this is not the state of a machine that sleeps');

    const text = await manifestIn(vm.snapshotFolder);
    if (text === null || !text.endsWith('}')) throw new SnapshotUnusable('its manifest does not verify');

    const { secret, size } = JSON.parse(text) as { secret: string; size: VmSize };
    const pid = this.machine.nextPid++;
    await vm.saveState({ pid, id: vm.id });
    const guest = await ScriptedGuest.start();
    guest.secret = secret;
    const running = this.#run(pid, vm.id, guest, size, vm.egress);
    await this.onWake(vm);
    vm.signal.throwIfAborted();
    await vm.beforeContinue();
    await this.onContinue(vm);
    return { ...running, size };
  }

  async boot(vm: BootVm): Promise<WokenVm> {
    this.boots += 1;
    const pid = this.machine.nextPid++;
    await vm.saveState({ pid, id: vm.id });
    await readFile(join(vm.folder, 'disk'));
    const running = this.#run(pid, vm.id, await ScriptedGuest.start(), BOOT_SIZE, vm.egress);
    await this.onBoot(vm);
    vm.signal.throwIfAborted();
    return { ...running, size: BOOT_SIZE };
  }

  async resize(vm: ExistingVm, from: VmSize, to: VmSize): Promise<VmSize> {
    this.resizes.push([from, to]);
    const machine = this.#of(Number(vm.state['pid']));
    machine.size = await this.onResize(from, to, vm);
    return machine.size;
  }

  egressDenied(state: DriverState): EgressDenied | null {
    return this.machine.running.get(Number(state['pid']))?.denied ?? null;
  }

  async readConsole(_folder: string, state: DriverState): Promise<ConsoleOutput | null> {
    return this.onConsole(Number(state['pid']));
  }

  async figures(_folder: string, state: DriverState): Promise<VmFigures> {
    this.#of(Number(state['pid']));
    return {
      cpuMs: 42.5,
      residentMib: 100,
      unsharedMib: this.unsharedMib,
      diskUsedMib: 3,
      networkInBytes: 1,
      networkOutBytes: 2,
    };
  }

  cpuMs({ pid }: ProcessIdentity): number | null {
    return this.machine.running.has(pid) ? 42.5 : null;
  }

  async destroy(_folder: string, state: DriverState | null): Promise<void> {
    this.destroys += 1;
    await this.onDestroy(state);
    if (state !== null) await this.machine.end(Number(state['pid']), endOf('destroyed'));
  }

  async reapOrphans(known: ReadonlySet<string>): Promise<string[]> {
    this.reapedWith.push([...known].sort());
    const orphans = [...this.machine.running.values()].filter((vm) => !known.has(vm.id));
    for (const { id } of orphans) await this.machine.kill(id, 'reaped');

    return orphans.map(({ id }) => id);
  }

  async close(): Promise<void> {}

  #run(
    pid: number,
    id: string,
    guest: ScriptedGuest,
    { vcpu, memoryMib, diskGib }: VmSize,
    egress: EgressPolicy = OPEN_EGRESS,
  ): RunningVm {
    this.onGuest(guest);
    this.machine.running.set(pid, {
      id,
      guest,
      size: { vcpu, memoryMib, diskGib },
      egress,
      denied: null,
      exited: Promise.withResolvers<VmEnd>(),
    });
    return { process: processOf(pid), ...placesOf(guest) };
  }

  #of(pid: number): ScriptedVm {
    const vm = this.machine.running.get(pid);
    if (vm === undefined) throw new DriverError('its process is gone');

    return vm;
  }
}

/** A step that fails like a driver. */
export function failing(message: string): () => Promise<never> {
  return async () => {
    throw new DriverError(message);
  };
}

function endOf(reason: string): VmEnd {
  return { code: 'process_ended', reason, lastAliveUnixMs: Date.now() };
}

async function manifestIn(snapshotFolder: string): Promise<string | null> {
  return readIfPresent(join(snapshotFolder, MANIFEST));
}

function processOf(pid: number): ProcessIdentity {
  return { pid, startTicks: '1', bootId: 'test' };
}

function placesOf({ endpoint: guest }: ScriptedGuest): Pick<RunningVm, 'guest' | 'models'> {
  return { guest, models: { listen: { ...guest, address: '127.0.0.2' }, url: `http://127.0.0.2:${guest.port}` } };
}
