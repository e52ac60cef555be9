// Destroys a VM: records the intent, has the driver free its resources, removes the files, fences
// the epoch, removes the record last. Every step may be repeated; after a crash the record tells
// where to resume.
import { hasCode } from '@berth/os/errors.ts';
import { HostError } from '../host-error.ts';
import { crashPoint } from '../crash-point.ts';
import { detach, release } from './exit.ts';
import type { LifecycleParts, OwnedVm } from '../owned/owned-vm.ts';
import type { OwnedVms } from '../owned/owned-vms.ts';

/** Joins the destroy in progress or begins one, under the newest epoch. */
export async function destroyVm(parts: LifecycleParts, vms: OwnedVms, id: string, epoch: number): Promise<void> {
  const vm = vms.find(id);
  if (vm === undefined) return;

  if (vm.ending !== null) {
    vm.ending.epoch = Math.max(vm.ending.epoch, epoch);
    await vm.ending.done;
    return;
  }
  const ending = { epoch: Math.max(vm.record.epoch, epoch), done: Promise.resolve() };
  vm.ending = ending;
  vm.closeStreams(new HostError('vm_not_found', 'the VM is being destroyed'));
  vm.operation?.abort.abort(
    new HostError('superseded', `a destroy overtook the VM while it was ${vm.operation.status}`),
  );
  ending.done = vm.queue.run(() => tearDown(parts, vm, ending.epoch));
  try {
    await ending.done;
    vms.delete(id);
  } finally {
    vm.ending = null;
  }
}

/**
 * Runs in the VM's turn. When it resolves, only the VM's fence is left. Rejects with the failure;
 * the record stays `destroying`.
 */
export async function tearDown(parts: LifecycleParts, vm: OwnedVm, epoch: number): Promise<void> {
  const { directory, fences, log } = parts;
  const startedMs = performance.now();
  crashPoint('destroy:accepted');
  detach(vm, new HostError('vm_not_found', 'the VM is being destroyed'));

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
  log.info({ vmId: vm.id, epoch, tookMs: Math.round(performance.now() - startedMs) }, 'VM destroyed');
}

/**
 * On a full disk the destroy continues without the record, because it frees space. After a crash
 * right then the VM has no disk, and the control plane retries the destroy; nothing makes a new
 * disk.
 */
async function recordIntent({ directory, log }: LifecycleParts, vm: OwnedVm): Promise<void> {
  try {
    await directory.makeFolders(vm.id);
    await directory.write(vm.record);
  } catch (error) {
    if (!hasCode(error, 'ENOSPC', 'EDQUOT')) throw error;

    log.warn({ vmId: vm.id, err: error }, 'the disk is full: destroying a VM without a record of the intent');
  }
}
