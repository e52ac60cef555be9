// The owner of every VM of this host. States and who may move them:
//
//   (none) --create--> creating --identity read back--> running --process ended--> dead
//                         \--failed--> dead (never ran: the same epoch may try again)
//   any --destroy--> destroying --> destroyed (only the epoch is remembered)
//
// Judges each call by its epoch (fencing.ts), lets in or refuses, and runs the verb in the VM's turn. Must not know HTTP.
import type { Readable } from 'node:stream';
import type { GuestExecRequest } from '@berth/protocol/guest.ts';
import type { VmCreate, VmSpec, VmView } from '@berth/protocol/host.ts';
import { offerOf, promisedTo, shortageFor, type AdmissionPolicy, type Amounts, type HeldVm, type MachineFigures } from '../admission.ts';
import { HostError } from '../host-error.ts';
import { judgeCreate, judgeDestroy, type KnownVm } from './fencing.ts';
import { bringUp } from './lifecycle-create.ts';
import { tearDown } from './lifecycle-destroy.ts';
import { stopWatching } from './lifecycle-exit.ts';
import { recoverAll } from './lifecycle-recover.ts';
import { newRecord, OwnedVm, type LifecycleParts } from './owned-vm.ts';

export interface Admission {
  policy: AdmissionPolicy;
  /** The machine's figures at this moment. */
  readMachine(): MachineFigures;
}

export class VmLifecycle {
  readonly #parts: LifecycleParts;
  readonly #admission: Admission;
  readonly #vms = new Map<string, OwnedVm>();
  #closing = false;

  constructor(parts: LifecycleParts, admission: Admission) {
    this.#parts = parts;
    this.#admission = admission;
  }

  /** Takes over what an earlier daemon left: adopts VMs that run, ends half-made ones, reaps what no record names. Once, before any other call. */
  async recover(): Promise<void> {
    for (const vm of await recoverAll(this.#parts)) {
      this.#vms.set(vm.id, vm);
    }
  }

  list(): VmView[] {
    return [...this.#vms.values()].map((vm) => vm.view());
  }

  /** Throws `vm_not_found` for a VM that was never here, or is forgotten. */
  get(id: string): VmView {
    const vm = this.#vms.get(id);
    if (vm !== undefined) {
      return vm.view();
    }
    const epoch = this.#parts.fences.epochOf(id);
    if (epoch === null) {
      throw new HostError('vm_not_found', `no VM ${id} on this host`);
    }
    return { id, epoch, status: 'destroyed' };
  }

  /** Resolves with the VM `running`. Calls with the same epoch and spec share one attempt. The caller going away does not stop it. */
  async create(id: string, { epoch, spec }: VmCreate): Promise<VmView> {
    // Judged anew after each step: what it waited for may have been overtaken.
    for (;;) {
      const verdict = judgeCreate(this.#known(id), epoch, spec);
      switch (verdict.do) {
        case 'refuse':
          throw new HostError(verdict.code, verdict.message);
        case 'came-down':
          throw new HostError('create_failed', `it ran under this epoch and ended: ${this.#vms.get(id)?.record.reason ?? 'unknown'}`);
        case 'answer':
          return this.get(id);
        case 'replace':
          await this.#end(id, 0);
          break;
        case 'join':
          await this.#vms.get(id)?.creating?.done;
          break;
        case 'start':
          await this.#start(id, epoch, spec);
          break;
      }
    }
  }

  /** Resolves when nothing of the VM is left. Overtakes a create under way. */
  async destroy(id: string, epoch: number): Promise<VmView> {
    const verdict = judgeDestroy(this.#known(id), epoch);
    if (verdict.do === 'refuse') {
      throw new HostError(verdict.code, verdict.message);
    }
    if (verdict.do === 'end') {
      await this.#end(id, epoch);
    }
    await this.#parts.fences.raise(id, epoch);
    return { id, epoch, status: 'destroyed' };
  }

  /** Runs a command in a VM that is `running`; see {@link GuestClient.exec}. */
  async exec(id: string, command: GuestExecRequest, signal: AbortSignal): Promise<Readable> {
    const { status } = this.get(id);
    const guest = this.#vms.get(id)?.guest;
    if (status !== 'running' || guest == null) {
      throw status === 'destroyed'
        ? new HostError('vm_not_found', `the VM ${id} is destroyed`)
        : new HostError('vm_not_running', `the VM ${id} is ${status === 'running' ? 'about to be dead' : status}, not running`);
    }
    return guest.exec(command, signal);
  }

  /** What may be handed out in all, and what VMs have of it; memory as the guests see it. */
  capacity(): { capacity: Amounts; reserved: Amounts } {
    const { policy } = this.#admission;
    return {
      capacity: offerOf(this.#admission.readMachine(), policy),
      reserved: promisedTo(this.#held(), { ...policy, vmOverheadMib: 0 }),
    };
  }

  /** Lets go of the VMs, which run on. Creates under way get until the signal aborts, then they are undone. */
  async close(patience: AbortSignal): Promise<void> {
    this.#closing = true;
    const stop = (): void => {
      for (const { creating } of this.#vms.values()) {
        creating?.abort.abort(new HostError('internal', 'the host daemon is shutting down'));
      }
    };
    patience.addEventListener('abort', stop, { once: true });
    if (patience.aborted) {
      stop();
    }
    await Promise.all([...this.#vms.values()].map((vm) => vm.turns.over()));
    patience.removeEventListener('abort', stop);
    for (const vm of this.#vms.values()) {
      stopWatching(vm);
      vm.guest?.close();
    }
  }

  /** No await between the look at the machine and the promise: two calls cannot be let in for the same room. */
  async #start(id: string, epoch: number, spec: VmSpec): Promise<void> {
    if (this.#closing) {
      throw new HostError('internal', 'the host daemon is shutting down');
    }
    const { policy } = this.#admission;
    const wanted = { vcpu: spec.vcpu, memoryMib: spec.memoryMib, diskGib: spec.diskGib };
    const shortage = shortageFor(wanted, this.#held(id), this.#admission.readMachine(), policy);
    if (shortage !== null) {
      const { resource, requested, available } = shortage;
      throw new HostError('insufficient_capacity', `not enough ${resource}: ${requested} asked for, ${available} available`, { shortage });
    }
    const earlier = this.#vms.get(id);
    const record = newRecord(id, epoch, spec);
    const vm = earlier ?? new OwnedVm(record);
    vm.record = earlier === undefined || earlier.record.freed ? record : { ...record, driverState: earlier.record.driverState };
    this.#vms.set(id, vm);

    const abort = new AbortController();
    const done = vm.turns.take(() => bringUp(this.#parts, vm, abort));
    const creating = { abort, done };
    vm.creating = creating;
    try {
      await done;
    } finally {
      vm.creating = null;
    }
  }

  /** Joins the destroy under way or begins one, under the newest of the epochs. */
  async #end(id: string, epoch: number): Promise<void> {
    const vm = this.#vms.get(id);
    if (vm === undefined) {
      return;
    }
    if (vm.ending !== null) {
      vm.ending.epoch = Math.max(vm.ending.epoch, epoch);
      await vm.ending.done;
      return;
    }
    const ending = { epoch: Math.max(vm.record.epoch, epoch), done: Promise.resolve() };
    vm.ending = ending;
    vm.creating?.abort.abort(new HostError('superseded', 'a destroy overtook the create'));
    ending.done = vm.turns.take(() => tearDown(this.#parts, vm, ending.epoch));
    try {
      await ending.done;
      this.#vms.delete(id);
    } finally {
      vm.ending = null;
    }
  }

  #known(id: string): KnownVm {
    return { record: this.#vms.get(id)?.known() ?? null, destroyedEpoch: this.#parts.fences.epochOf(id) };
  }

  #held(except?: string): HeldVm[] {
    return [...this.#vms.values()].flatMap((vm) => (vm.id === except ? [] : (vm.held() ?? [])));
  }
}
