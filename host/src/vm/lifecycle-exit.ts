// How a VM goes down without being destroyed: its process ended, or it never came up. Its machine resources are freed, its record says why.
// The folder of a VM that ran stays until it is destroyed: its disk may hold what nobody else has.
import { messageOf } from '../host-error.ts';
import type { LifecycleParts, OwnedVm, Watch } from './owned-vm.ts';

/** Has the driver end and free everything outside the folder; `freed` in the record says that it did. Rejects when it could not; may be called again. */
export async function release(parts: LifecycleParts, vm: OwnedVm): Promise<void> {
  await parts.driver.destroy(parts.directory.driverFolder(vm.id), vm.record.driverState);
  vm.record = { ...vm.record, freed: true };
}

/** In the VM's turn: the watched process ended. Never rejects: nobody waits for it. */
export async function cameDown(parts: LifecycleParts, vm: OwnedVm, watch: Watch, why: string): Promise<void> {
  if (vm.watch !== watch || vm.ending !== null || vm.record.status !== 'running') {
    return;
  }
  parts.log.warn({ vmId: vm.id, epoch: vm.record.epoch, why }, 'the process of a VM ended');
  await markDead(parts, vm, why);
}

/** Writes `dead` with its reason, then frees the VM's resources. What fails is logged and left to the destroy or the next start. */
export async function markDead(parts: LifecycleParts, vm: OwnedVm, why: string): Promise<void> {
  stopWatching(vm);
  vm.guest?.close();
  vm.guest = null;
  const dead = { ...vm.record, status: 'dead' as const, reason: why.slice(0, 4_096), freed: false };
  try {
    try {
      await parts.directory.write(dead);
    } finally {
      vm.record = dead;
    }
    await release(parts, vm);
    await parts.directory.write(vm.record);
  } catch (error) {
    parts.log.error({ vmId: vm.id, err: error }, `a dead VM was not cleaned up: ${messageOf(error)}`);
  }
}

export function stopWatching(vm: OwnedVm): void {
  vm.watch?.stop.abort();
  vm.watch = null;
}
