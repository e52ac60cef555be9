// What a verb does that finds its VM as it shall be: its epoch becomes the VM's.
import type { LifecycleParts, OwnedVm } from '../owned/owned-vm.ts';

/**
 * In the VM's turn: from now on older epochs are refused. Nothing else changes; whatever overtook
 * it is left to the next look.
 */
export async function raiseEpoch({ directory }: LifecycleParts, vm: OwnedVm, epoch: number): Promise<void> {
  const { status } = vm.record;
  if (vm.ending === null && (status === 'running' || status === 'asleep') && epoch > vm.record.epoch) {
    const raised = { ...vm.record, epoch };
    await directory.write(raised);
    vm.record = raised;
  }
}
