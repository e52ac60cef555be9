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
import { HostError } from '../host-error.ts';
import type { OwnedVm } from './owned-vm.ts';

export interface Admission {
  policy: AdmissionPolicy;
  largest: Amounts;
  /** @param vmIds VMs whose files are theirs, not another's */
  readHost(vmIds: readonly string[]): HostFigures;
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
    return {
      capacity: allocatableOf(machine, policy),
      largest: largestOf(machine, policy, largest),
      reserved: promisedTo(this.#held(), { ...policy, vmOverheadMib: 0 }),
    };
  }

  /**
   * Throws `insufficient_capacity` if it does not fit. Synchronous, so that a caller that promises
   * at once cannot be overtaken.
   * @param except a VM being made anew, whose recorded resources are about to be freed
   */
  admit(wanted: Amounts, what: 'machine' | 'added', except?: string): void {
    const { policy } = this.#admission;
    const shortage = shortageFor(wanted, this.#held(except), this.#readHost(), policy, what);
    if (shortage !== null) {
      const { resource, requested, available } = shortage;
      throw new HostError(
        'insufficient_capacity',
        `not enough ${resource}: ${requested} requested, ${available} available. ${capacityRemedy(resource)}`,
        { shortage },
      );
    }
  }

  #readHost(): HostFigures {
    return this.#admission.readHost([...this.#vms()].map(({ id }) => id));
  }

  #held(except?: string): HeldVm[] {
    return [...this.#vms()].flatMap((vm) => (vm.id === except ? [] : vm.held()));
  }
}
