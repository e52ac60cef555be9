// Room for verbs: begins each once it is admitted. For a refused one ends pool VMs, and waits for
// VMs that are about to release resources or to leave promised memory unused. Must not admit.
import type { WarmPool } from '../../pool/pool.ts';
import { HostError } from '../host-error.ts';
import { CapacityError } from './capacity.ts';
import type { OwnedVm } from './owned-vm.ts';

/** Longest wait of a call for room, in milliseconds: below the margin of each verb's caller. */
export const ROOM_WAIT_MS = 15_000;

interface Begun {
  done: Promise<void>;
}

export class Room {
  readonly #vms: () => Iterable<OwnedVm>;
  readonly #pool: WarmPool | undefined;
  readonly #closing = new AbortController();

  constructor(vms: () => Iterable<OwnedVm>, pool: WarmPool | undefined) {
    this.#vms = vms;
    this.#pool = pool;
  }

  /** Signal that ends the waits of one call. */
  patience(): AbortSignal {
    return AbortSignal.any([this.#closing.signal, AbortSignal.timeout(ROOM_WAIT_MS)]);
  }

  /** Resolves when the verb is done. Also after a wait for room: the caller must decide again. */
  async run(vmId: string, patience: AbortSignal, begin: () => Begun): Promise<void> {
    if (this.#closing.signal.aborted) throw new HostError('internal', 'the host daemon is shutting down');

    let begun: Begun;
    try {
      begun = begin();
    } catch (refusal) {
      await this.#freed(refusal, vmId, patience);
      return;
    }
    await begun.done;
  }

  /** From now on nothing begins. */
  close(): void {
    this.#closing.abort();
  }

  /** Resolves after a change that may make room, or at the timeout. Rethrows a final refusal. */
  async #freed(refusal: unknown, vmId: string, patience: AbortSignal): Promise<void> {
    if (!(refusal instanceof CapacityError) || patience.aborted) throw refusal;
    const { requested, available } = refusal.shortage;
    if (refusal.inUse && (await this.#pool?.giveWay(requested - available)) === true) return;

    const verbs = [...this.#vms()].flatMap((vm) => (vm.id === vmId ? [] : (vm.ending ?? vm.operation ?? [])));
    if (!refusal.passing || verbs.length === 0) throw refusal;

    const aborted = Promise.withResolvers<void>();
    const stop = (): void => aborted.resolve();
    patience.addEventListener('abort', stop, { once: true });
    await Promise.race([...verbs.map(({ done }) => done.catch(() => undefined)), aborted.promise]);
    patience.removeEventListener('abort', stop);
  }
}
