// The network slot of each VM: recorded before anything runs in it, released when nothing does any
// more. Independent of QEMU.
import type { EgressDenied, EgressPolicy } from '@berth/protocol/egress.ts';
import { boundedMessageOf } from '../vm/host-error.ts';
import type { DriverState } from '../vm/driver.ts';
import { createNetwork } from './network.ts';
import type { NetworkOptions } from './dns/network-options.ts';
import { DEFAULT_REGISTRY_FOLDER, readRegistry } from './slots/registry.ts';
import { parseGuestCidr, slotOf, type Network, type Slot } from './slots/slot.ts';
import { endSlotProcesses } from './slots/slot-processes.ts';

/**
 * Interval of the counts of refused packets: each takes about 20 ms of CPU time per VM with a
 * restrictive policy.
 */
const COUNT_EVERY_MS = 30_000;

interface SlotHolder extends DriverState {
  vmId: string;
  /** Null if the VM has no slot. */
  slot: number | null;
}

/** A slot and the record that names it. */
export interface ClaimedSlot<State extends SlotHolder> {
  slot: Slot;
  state: State;
}

interface Claimant {
  saveState: (state: DriverState) => Promise<void>;
  egress: EgressPolicy;
  signal: AbortSignal;
}

export class Claims {
  readonly #options: NetworkOptions;
  readonly #warn: (message: string, data: object) => void;
  readonly #network: Network;
  /** Slots left by VMs but not yet released, keyed by VM id. No record names them any more. */
  readonly #left = new Map<string, number>();
  readonly #freeing = new Map<string, Promise<void>>();
  #counting: NodeJS.Timeout | undefined;

  constructor(options: NetworkOptions, warn: (message: string, data: object) => void) {
    this.#options = options;
    this.#warn = warn;
    this.#network = createNetwork(options);
  }

  /** See {@link Network.prepare}. From here on counts refused packets. */
  async prepare(): Promise<string[]> {
    const changes = await this.#network.prepare();
    this.#countLater();
    return changes;
  }

  /**
   * Resolves once the claim is durable in the record and the slot enforces the egress policy.
   * Releases the slot after a failure.
   */
  async claim<State extends SlotHolder>(
    { saveState, egress, signal }: Claimant,
    state: State,
  ): Promise<ClaimedSlot<State>> {
    await this.free({ vmId: state.vmId, slot: null });
    const slot = await this.#network.claim(state.vmId, signal);
    const claimed = { ...state, slot: slot.number };
    try {
      await saveState(claimed);
      if (egress.mode !== 'open') await this.#network.setEgress(slot.number, egress);
      return { slot, state: claimed };
    } catch (error) {
      await this.#network.release(slot.number);
      throw error;
    }
  }

  /**
   * Runs `work` with a {@link claim}. If `work` rejects, ends the slot's processes and releases it.
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

  /** See {@link Network.adopt}. */
  adopt(number: number, egress: EgressPolicy): Promise<Slot> {
    return this.#network.adopt(number, egress);
  }

  /** See {@link Network.setEgress}. */
  setEgress(number: number, egress: EgressPolicy): Promise<void> {
    return this.#network.setEgress(number, egress);
  }

  /** See {@link Network.egressDenied}. */
  egressDenied(number: number | null): EgressDenied | null {
    return number === null ? null : this.#network.egressDenied(number);
  }

  slotOf(number: number): Slot {
    return slotOf(parseGuestCidr(this.#options.cidr), number);
  }

  /**
   * Ends all processes in the VM's slot and in a slot it left before, and releases both.
   * Idempotent.
   */
  async free({ vmId, slot }: SlotHolder): Promise<void> {
    await this.#freeing.get(vmId);
    const left = this.#left.get(vmId);
    for (const number of new Set([slot, left]))
      if (number !== null && number !== undefined) await this.#releaseSlot(vmId, number);

    this.#left.delete(vmId);
  }

  /**
   * Frees the slot in the background after the VM's process exited; freeing takes as long as the
   * rest of a sleep. The VM's next claim, its destroy and a reap wait for it and retry a failure.
   * The registry names the VM until then; the next daemon reaps what no record names.
   */
  freeSoon({ vmId, slot }: SlotHolder): void {
    if (slot === null) return;

    this.#left.set(vmId, slot);
    const freeing = this.#releaseSlot(vmId, slot)
      .then(
        () => void this.#left.delete(vmId),
        (error: unknown) =>
          this.#warn('could not release a slot', { machineId: vmId, slot, error: boundedMessageOf(error) }),
      )
      .finally(() => this.#freeing.delete(vmId));
    this.#freeing.set(vmId, freeing);
  }

  /**
   * Ends this instance's processes of unknown VMs and releases their slots. Resolves with one
   * sentence per VM.
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

  /** Keeps claimed slots. */
  async close(): Promise<void> {
    clearTimeout(this.#counting);
    this.#counting = undefined;
    await this.#freed();
    await this.#network.close();
  }

  /** After the end of the former count: counts do not pile up. */
  #countLater(): void {
    this.#counting = setTimeout(() => {
      void this.#network.countEgressDenied().then(() => {
        if (this.#counting !== undefined) this.#countLater();
      });
    }, COUNT_EVERY_MS);
    this.#counting.unref();
  }

  async #freed(): Promise<void> {
    await Promise.all(this.#freeing.values());
  }

  async #releaseSlot(vmId: string, number: number): Promise<void> {
    // A released slot may belong to another VM by now.
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
