// How a VM is destroyed: the intent is recorded, the driver frees the machine's resources, the
// files go, the epoch is fenced, the record goes last. Every step may be repeated; a daemon that is
// killed anywhere goes on from the record.
import { HostError } from '../host-error.ts';
import { crashPoint } from '../crash-point.ts';
import { letGo, release } from './exit.ts';
import type { LifecycleParts, OwnedVm } from '../owned/owned-vm.ts';

/**
 * In the VM's turn. When this resolves nothing of the VM is left but its fence. Rejects with what
 * failed; the record stays and says `destroying`.
 */
export async function tearDown(parts: LifecycleParts, vm: OwnedVm, epoch: number): Promise<void> {
  const { directory, fences, log } = parts;
  const startedMs = performance.now();
  crashPoint('destroy:accepted');
  letGo(vm, new HostError('vm_not_found', 'the VM is being destroyed'));

  vm.record = { ...vm.record, epoch, status: 'destroying' };
  await recordIntent(parts, vm);
  crashPoint('destroy:recorded');
  await release(parts, vm);
  crashPoint('destroy:driver-done');
  await directory.removeContents(vm.id);
  crashPoint('destroy:contents-removed');
  await fences.raise(vm.id, epoch);
  crashPoint('destroy:fenced');
  await directory.remove(vm.id);
  crashPoint('destroy:removed');
  log.info({ vmId: vm.id, epoch, tookMs: Math.round(performance.now() - startedMs) }, 'a VM is destroyed');
}

/**
 * On a full disk the destroy goes on without: it is what makes room. A daemon killed right then has
 * a VM without its disk, whose destroy the control plane asks for again; nothing makes it a new
 * one.
 */
async function recordIntent({ directory, log }: LifecycleParts, vm: OwnedVm): Promise<void> {
  try {
    await directory.makeFolders(vm.id);
    await directory.write(vm.record);
  } catch (error) {
    if (!['ENOSPC', 'EDQUOT'].includes((error as NodeJS.ErrnoException).code ?? '')) throw error;

    log.warn({ vmId: vm.id, err: error }, 'the disk is full: a VM is destroyed without a record of the intent');
  }
}
