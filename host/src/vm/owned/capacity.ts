// What the VMs of this host hold of it, and whether one more, or more of one, fits: the lifecycle's
// look at admission. Must not move a VM.
import {
  largestOf,
  offerOf,
  promisedTo,
  shortageFor,
  type AdmissionPolicy,
  type Amounts,
  type HeldVm,
  type MachineFigures,
} from '../admission.ts';
import { HostError } from '../host-error.ts';
import type { OwnedVm } from './owned-vm.ts';

export interface Admission {
  policy: AdmissionPolicy;
  /** What the driver can make one machine of. */
  largest: Amounts;
  /** The machine's figures at this moment. */
  readMachine(): MachineFigures;
}

export class Capacity {
  readonly #admission: Admission;
  readonly #vms: () => Iterable<OwnedVm>;

  constructor(admission: Admission, vms: () => Iterable<OwnedVm>) {
    this.#admission = admission;
    this.#vms = vms;
  }

  /**
   * What may be handed out in all, what VMs have of it, and the most that one can have; memory as
   * the guests see it.
   */
  figures(): { capacity: Amounts; reserved: Amounts; largest: Amounts } {
    const { policy, largest } = this.#admission;
    const machine = this.#admission.readMachine();
    return {
      capacity: offerOf(machine, policy),
      largest: largestOf(machine, policy, largest),
      reserved: promisedTo(this.#held(), { ...policy, vmOverheadMib: 0 }),
    };
  }

  /**
   * Throws `insufficient_capacity` when it does not fit. Synchronous, so that a caller that
   * promises at once cannot be overtaken.
   * @param except a VM that is made anew: what is on record of it is about to go
   */
  letIn(wanted: Amounts, what: 'machine' | 'added', except?: string): void {
    const { policy } = this.#admission;
    const shortage = shortageFor(wanted, this.#held(except), this.#admission.readMachine(), policy, what);
    if (shortage !== null) {
      const { resource, requested, available } = shortage;
      throw new HostError(
        'insufficient_capacity',
        `not enough ${resource}: ${requested} asked for, ${available} available`,
        { shortage },
      );
    }
  }

  #held(except?: string): HeldVm[] {
    return [...this.#vms()].flatMap((vm) => (vm.id === except ? [] : vm.held()));
  }
}
