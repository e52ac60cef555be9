// Resources held by this host's VMs, and admission of new VMs and additions. Must not move a VM.
import {
  largestOf,
  allocatableOf,
  promisedTo,
  shortageFor,
  type AdmissionPolicy,
  type Amounts,
  type HeldVm,
  type HostFigures,
} from '../admission.ts';
import { capacityRemedy } from '@berth/protocol/host.ts';
import { HostError, type Shortage } from '../host-error.ts';
import type { OwnedVm } from './owned-vm.ts';

export interface Admission {
  policy: AdmissionPolicy;
  largest: Amounts;
  /** @param vmIds VMs whose files are theirs, not another's */
  readHost(vmIds: readonly string[]): HostFigures;
}

/** Refusal for missing capacity. */
export class CapacityError extends HostError {
  declare readonly shortage: Shortage;
  /** Only the memory in use is short: the promises leave enough. */
  readonly inUse: boolean;
  /** There is enough once the verbs in progress succeed. */
  readonly passing: boolean;

  constructor(shortage: Shortage, { inUse, passing }: { inUse: boolean; passing: boolean }) {
    const { resource, requested, available } = shortage;
    super(
      'insufficient_capacity',
      `not enough ${resource}: ${requested} requested, ${available} available. ${capacityRemedy(resource)}`,
      { shortage },
    );
    this.inUse = inUse;
    this.passing = passing;
  }
}

export class Capacity {
  readonly #admission: Admission;
  readonly #vms: () => Iterable<OwnedVm>;

  constructor(admission: Admission, vms: () => Iterable<OwnedVm>) {
    this.#admission = admission;
    this.#vms = vms;
  }

  /**
   * Total allocatable resources, the part reserved by VMs, and the largest possible VM; memory as
   * seen by guests.
   */
  figures(): { capacity: Amounts; reserved: Amounts; largest: Amounts } {
    const { policy, largest } = this.#admission;
    const machine = this.#readHost();
    const held = this.#held();
    return {
      capacity: allocatableOf(machine, policy, held),
      largest: largestOf(machine, policy, largest),
      reserved: promisedTo(held, { ...policy, vmOverheadMib: 0 }),
    };
  }

  /**
   * Throws `insufficient_capacity` if it does not fit. Synchronous, so that a caller that promises
   * at once cannot be overtaken.
   * @param except a VM being made anew, whose recorded resources are about to be freed
   */
  admit(wanted: Amounts, what: 'machine' | 'added', except?: string): void {
    const { policy } = this.#admission;
    const host = this.#readHost();
    const held = this.#held(except);
    const shortage = shortageFor(wanted, held, host, policy, what);
    if (shortage === null) return;

    const soon = this.#vmsBut(except).flatMap((vm) => vm.heldSoon());
    const releasedMib = promisedTo(held, policy).memoryMib - promisedTo(soon, policy).memoryMib;
    const fits = (vms: HeldVm[], memAvailableMib: number): boolean =>
      shortageFor(wanted, vms, { ...host, memAvailableMib }, policy, what) === null;
    throw new CapacityError(shortage, {
      inUse: fits(held, Infinity),
      passing: fits(soon, host.memAvailableMib + releasedMib),
    });
  }

  #readHost(): HostFigures {
    return this.#admission.readHost([...this.#vms()].map(({ id }) => id));
  }

  #held(except?: string): HeldVm[] {
    return this.#vmsBut(except).flatMap((vm) => vm.held());
  }

  #vmsBut(id: string | undefined): OwnedVm[] {
    return [...this.#vms()].filter((vm) => vm.id !== id);
  }
}
