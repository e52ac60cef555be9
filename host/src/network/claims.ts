// Which network slot each VM has, from the claim to the end: on record before anything runs in it,
// given back when nothing does any more. Knows no QEMU.
import { messageOf } from '../vm/host-error.ts';
import type { DriverState } from '../vm/driver.ts';
import { createNetwork } from './network.ts';
import type { NetworkOptions } from './dns/network-options.ts';
import { DEFAULT_REGISTRY_FOLDER, readRegistry } from './slots/registry.ts';
import { parseGuestCidr, slotOf, type Network, type Slot } from './slots/slot.ts';
import { endSlotProcesses } from './slots/slot-processes.ts';

/** The part of a VM's record that names its slot. */
interface SlotHolder extends DriverState {
  vmId: string;
  /** Null: the VM has no slot. */
  slot: number | null;
}

/** A slot, and the record that names it. */
export interface ClaimedSlot<State extends SlotHolder> {
  slot: Slot;
  state: State;
}

/** Whose slot it is to be. */
interface Claimant {
  saveState: (state: DriverState) => Promise<void>;
  signal: AbortSignal;
}

export class Claims {
  readonly #options: NetworkOptions;
  readonly #warn: (message: string, data: object) => void;
  readonly #network: Network;
  /** Slots that VMs have left and that are not given back yet: no record names them any more. */
  readonly #left = new Map<string, number>();
  readonly #freeing = new Map<string, Promise<void>>();

  constructor(options: NetworkOptions, warn: (message: string, data: object) => void) {
    this.#options = options;
    this.#warn = warn;
    this.#network = createNetwork(options);
  }

  /** As {@link Network.prepare}. */
  prepare(): Promise<string[]> {
    return this.#network.prepare();
  }

  /**
   * The claim is in the record, durably, when this resolves; a claim that could not be recorded is
   * given back.
   */
  async claim<State extends SlotHolder>({ saveState, signal }: Claimant, state: State): Promise<ClaimedSlot<State>> {
    await this.free({ vmId: state.vmId, slot: null });
    const slot = await this.#network.claim(state.vmId, signal);
    const claimed = { ...state, slot: slot.number };
    try {
      await saveState(claimed);
      return { slot, state: claimed };
    } catch (error) {
      await this.#network.release(slot.number);
      throw error;
    }
  }

  /**
   * As {@link claim}, for `work`: when that rejects, what runs in the slot is ended and the slot
   * given back.
   */
  async claimFor<State extends SlotHolder, T>(
    claimant: Claimant,
    state: State,
    work: (claimed: ClaimedSlot<State>) => Promise<T>,
  ): Promise<T> {
    const claimed = await this.claim(claimant, state);
    try {
      return await work(claimed);
    } catch (error) {
      await this.free(claimed.state);
      throw error;
    }
  }

  /** As {@link Network.adopt}. */
  adopt(number: number): Promise<Slot> {
    return this.#network.adopt(number);
  }

  /** Everything that follows from a slot's number. */
  slotOf(number: number): Slot {
    return slotOf(parseGuestCidr(this.#options.cidr), number);
  }

  /**
   * Ends what runs in the VM's slot, also in one that it left before, and gives it back.
   * Idempotent.
   */
  async free({ vmId, slot }: SlotHolder): Promise<void> {
    await this.#freeing.get(vmId);
    const left = this.#left.get(vmId);
    for (const number of new Set([slot, left]))
      if (number !== null && number !== undefined) await this.#giveBack(vmId, number);

    this.#left.delete(vmId);
  }

  /**
   * As {@link free}, after the VM's process has ended, but nobody waits for it: it takes as long as
   * all the rest of a sleep. The VM's next claim does, its destroy, and whoever reaps. What fails
   * is tried again there; the registry names the VM until then, and the next daemon reaps what no
   * record names.
   */
  freeSoon({ vmId, slot }: SlotHolder): void {
    if (slot === null) return;

    this.#left.set(vmId, slot);
    const freeing = this.#giveBack(vmId, slot)
      .then(
        () => void this.#left.delete(vmId),
        (error: unknown) =>
          this.#warn('a slot could not be given back', { machineId: vmId, slot, error: messageOf(error) }),
      )
      .finally(() => this.#freeing.delete(vmId));
    this.#freeing.set(vmId, freeing);
  }

  /**
   * Ends what this instance runs on the machine for VMs that are not known, and gives their slots
   * back. Resolves with a sentence for each.
   */
  async reap(known: ReadonlySet<string>): Promise<string[]> {
    await this.#freed();
    const kept = new Set<number>();
    const reaped: string[] = [];
    for (const [number, { vmId }] of await this.#registry()) {
      if (vmId !== null && known.has(vmId)) {
        kept.add(number);
        continue;
      }
      const ended = vmId === null ? 0 : await endSlotProcesses(this.slotOf(number));
      if (ended > 0) reaped.push(`${ended} processes of ${vmId} in network slot ${number}`);
    }
    return [...reaped, ...(await this.#network.reap(kept))];
  }

  /** Slots that are claimed stay. */
  async close(): Promise<void> {
    await this.#freed();
    await this.#network.close();
  }

  async #freed(): Promise<void> {
    await Promise.all(this.#freeing.values());
  }

  async #giveBack(vmId: string, number: number): Promise<void> {
    // A slot that was released may be another VM's by now.
    if ((await this.#registry()).get(number)?.vmId === vmId) {
      await endSlotProcesses(this.slotOf(number));
      await this.#network.release(number);
    }
  }

  #registry() {
    const { registryFolder, instanceId } = this.#options;
    return readRegistry(registryFolder ?? DEFAULT_REGISTRY_FOLDER, instanceId);
  }
}
