// Raises a VM's epoch when a verb finds it already in the requested state.
import type { LifecycleParts, OwnedVm } from '../owned/owned-vm.ts';

/**
 * Runs in the VM's turn: refuses older epochs from now on and changes nothing else. Does nothing if
 * another verb overtook it; the caller decides again.
 */
export async function raiseEpoch({ directory }: LifecycleParts, vm: OwnedVm, epoch: number): Promise<void> {
  const { status } = vm.record;
  if (vm.ending === null && (status === 'running' || status === 'asleep') && epoch > vm.record.epoch) {
    const raised = { ...vm.record, epoch };
    await directory.write(raised);
    vm.record = raised;
  }
}
