// All VMs of this host by id, with lookups for views, for admission of calls and for running
// guests. Moves none of them.
import type { VmView } from '@berth/protocol/host.ts';
import type { GuestClient } from '../../guest/client.ts';
import { HostError } from '../host-error.ts';
import type { KnownVm } from './fencing.ts';
import type { LifecycleParts, OwnedVm } from './owned-vm.ts';

export class OwnedVms {
  readonly #parts: Pick<LifecycleParts, 'driver' | 'fences'>;
  readonly #vms = new Map<string, OwnedVm>();

  constructor(parts: Pick<LifecycleParts, 'driver' | 'fences'>) {
    this.#parts = parts;
  }

  add(vm: OwnedVm): void {
    this.#vms.set(vm.id, vm);
  }

  delete(id: string): void {
    this.#vms.delete(id);
  }

  find(id: string): OwnedVm | undefined {
    return this.#vms.get(id);
  }

  values(): Iterable<OwnedVm> {
    return this.#vms.values();
  }

  list(): VmView[] {
    return [...this.#vms.values()].map((vm) => this.view(vm));
  }

  view(vm: OwnedVm): VmView {
    if (vm.watch === null) return vm.view();
    const { driver } = this.#parts;
    return vm.view({
      cpuMs: driver.cpuMs(vm.watch.process),
      egressDenied: driver.egressDenied(vm.record.driverState ?? {}),
    });
  }

  /** Throws `vm_not_found` for an unknown or forgotten VM. */
  show(id: string): VmView {
    const vm = this.#vms.get(id);
    if (vm !== undefined) return this.view(vm);

    const epoch = this.#parts.fences.epochOf(id);
    if (epoch === null) throw new HostError('vm_not_found', `no VM ${id} on this host`);

    return { id, epoch, status: 'destroyed' };
  }

  known(id: string): KnownVm {
    return { record: this.#vms.get(id)?.known() ?? null, destroyedEpoch: this.#parts.fences.epochOf(id) };
  }

  underWay(id: string): { done: Promise<void> } {
    const operation = this.#vms.get(id)?.operation;
    if (operation == null) throw new Error(`bug: the VM ${id} is in transition without a transition in progress`);

    return operation;
  }

  /** Throws `vm_not_running` or `vm_not_found`. */
  running(id: string, epoch?: number): { vm: OwnedVm; guest: GuestClient } {
    const { status } = this.show(id);
    const vm = this.#vms.get(id);
    if (status !== 'running' || vm?.guest == null) {
      throw status === 'destroyed'
        ? new HostError('vm_not_found', `the VM ${id} is destroyed`)
        : new HostError('vm_not_running', `the VM ${id} is ${status === 'running' ? 'dying' : status}, not running`);
    }
    const newest = vm.known().epoch;
    if (epoch !== undefined && epoch < newest)
      throw new HostError('stale_epoch', `epoch ${epoch} is older than ${newest}, the newest seen for this VM`);

    return { vm, guest: vm.guest };
  }
}
