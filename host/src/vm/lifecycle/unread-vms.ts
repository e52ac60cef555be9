// VMs whose record was unreadable when the daemon started. A verb on one first reads the record
// again and then takes the VM over, as at the start. Until that succeeds nothing of it is touched.
import { HostError, boundedMessageOf } from '../host-error.ts';
import type { FoundRecord } from '../directory/record.ts';
import { recoverOne } from './recover.ts';
import { OwnedVm, type LifecycleParts } from '../owned/owned-vm.ts';
import type { OwnedVms } from '../owned/owned-vms.ts';
import { SerialQueue } from '@berth/os/serial-queue.ts';

export class UnreadVms {
  readonly #parts: LifecycleParts;
  readonly #owned: OwnedVms;
  readonly #ids = new Set<string>();
  readonly #queue = new SerialQueue();

  /** @param owned receives the VMs taken over */
  constructor(parts: LifecycleParts, owned: OwnedVms) {
    this.#parts = parts;
    this.#owned = owned;
  }

  add(id: string): void {
    this.#ids.add(id);
  }

  has(id: string): boolean {
    return this.#ids.has(id);
  }

  /**
   * Resolves when the VM is known: owned, or nothing is left of it. Rejects with `internal` while
   * its record is unreadable.
   */
  async takeOver(id: string): Promise<void> {
    await this.#queue.run(async () => {
      if (!this.#ids.has(id)) return;

      const found = await this.#parts.directory
        .read(id)
        .catch((error: unknown): FoundRecord => ({ kind: 'corrupt', why: boundedMessageOf(error) }));
      if (found.kind !== 'record') {
        // A damaged or missing record does not name the process that may still run: only a start,
        // which knows all other VMs, can find it.
        const why = found.kind === 'corrupt' ? found.why : 'it is gone';
        throw new HostError(
          'internal',
          `the record of the VM ${id} cannot be read, neither at the start of the host daemon nor now: ${why}`,
        );
      }
      const vm = new OwnedVm(found.record);
      if (await recoverOne(this.#parts, vm)) this.#owned.add(vm);

      this.#ids.delete(id);
      this.#parts.log.info(
        { vmId: id, epoch: vm.record.epoch },
        'took over a VM whose record could not be read at the start',
      );
    });
  }
}
