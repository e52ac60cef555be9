// A driver whose "processes" are scripted guests in the test process: creates can be held, failed or killed at will. What it would hold of the
// machine is counted, and outlives an instance of it, as processes outlive a daemon.
import { join } from 'node:path';
import { writeFile } from 'node:fs/promises';
import { DriverError, type CreateVm, type DriverState, type RunningVm, type VmDriver, type VmProcess } from '../../src/vm/driver.ts';
import { ScriptedGuest } from './scripted-guest.ts';

/** The machine that several instances of the driver, one after the other, run on. */
export class ScriptedMachine {
  readonly running = new Map<number, { id: string; guest: ScriptedGuest; exited: PromiseWithResolvers<string> }>();
  nextPid = 1_000;

  /** As `kill -9` of the VM's process. */
  async kill(id: string, reason = 'ended by signal 9'): Promise<void> {
    for (const [pid, vm] of this.running) {
      if (vm.id === id) {
        this.running.delete(pid);
        await vm.guest.stop();
        vm.exited.resolve(reason);
      }
    }
  }

  of(id: string): { id: string; guest: ScriptedGuest }[] {
    return [...this.running.values()].filter((vm) => vm.id === id);
  }

  async stop(): Promise<void> {
    for (const { id } of this.running.values()) {
      await this.kill(id);
    }
  }
}

export class ScriptedDriver implements VmDriver {
  readonly name = 'fake';
  readonly accelerator = 'none';
  readonly capabilities = { isolates: false, network: false, hotplug: false };
  readonly machine: ScriptedMachine;
  /** Called in each create once its state is saved; a throw fails it. */
  onCreate: (vm: CreateVm) => Promise<void> = async () => {};
  /** Called for each guest before it is handed over. */
  onGuest: (guest: ScriptedGuest) => void = () => {};
  /** Called in each destroy; a throw fails it. */
  onDestroy: (state: DriverState | null) => Promise<void> = async () => {};
  /** Called in each recover; a throw fails it. */
  onRecover: () => Promise<void> = async () => {};
  /** The daemon that used it was killed: it hears of nothing any more. */
  killed = false;
  readonly reapedWith: string[][] = [];
  creates = 0;
  destroys = 0;

  constructor(machine: ScriptedMachine) {
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
    const guest = await ScriptedGuest.start();
    this.onGuest(guest);
    this.machine.running.set(pid, { id: vm.id, guest, exited: Promise.withResolvers<string>() });
    return { process: processOf(pid), guest: guest.endpoint };
  }

  async recover(_folder: string, state: DriverState): Promise<RunningVm | null> {
    await this.onRecover();
    const pid = Number(state['pid']);
    const vm = this.machine.running.get(pid);
    return vm === undefined ? null : { process: processOf(pid), guest: vm.guest.endpoint };
  }

  async exited(process: VmProcess, signal: AbortSignal): Promise<string> {
    const aborted = new Promise<string>((resolve) => {
      signal.addEventListener('abort', () => resolve('no longer watched'), { once: true });
    });
    const why = await Promise.race([aborted, this.machine.running.get(process.pid)?.exited.promise ?? 'gone before it was watched']);
    return this.killed ? new Promise<never>(() => {}) : why;
  }

  async destroy(_folder: string, state: DriverState | null): Promise<void> {
    this.destroys += 1;
    await this.onDestroy(state);
    if (state !== null) {
      const pid = Number(state['pid']);
      const vm = this.machine.running.get(pid);
      this.machine.running.delete(pid);
      await vm?.guest.stop();
      vm?.exited.resolve('destroyed');
    }
  }

  async reapOrphans(known: ReadonlySet<string>): Promise<string[]> {
    this.reapedWith.push([...known].sort());
    const orphans = [...this.machine.running.values()].filter((vm) => !known.has(vm.id));
    for (const { id } of orphans) {
      await this.machine.kill(id, 'reaped');
    }
    return orphans.map(({ id }) => id);
  }

  async close(): Promise<void> {}
}

/** A create that fails as a driver fails. */
export function failing(message: string): () => Promise<void> {
  return async () => {
    throw new DriverError(message);
  };
}

function processOf(pid: number): VmProcess {
  return { pid, startTicks: '1', bootId: 'test' };
}
