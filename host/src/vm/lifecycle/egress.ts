// Changes the egress policy of a VM: record first, then the rules, so that a daemon that crashes in
// between enforces the new policy when it adopts the VM.
import type { EgressPolicy } from '@berth/protocol/egress.ts';
import type { VmView } from '@berth/protocol/host.ts';
import { HostError } from '../host-error.ts';
import { decideEgress } from '../owned/fencing.ts';
import type { OwnedVms } from '../owned/owned-vms.ts';
import { egressOf, type LifecycleParts, type OwnedVm } from '../owned/owned-vm.ts';

export interface EgressOrder {
  epoch: number;
  egress: EgressPolicy;
}

/** Resolves when the policy, or a newer one, is in force. Waits for a verb in progress. */
export async function changeEgress(
  parts: LifecycleParts,
  vms: OwnedVms,
  id: string,
  order: EgressOrder,
): Promise<VmView> {
  const refusal = decideEgress(vms.known(id), order.epoch);
  const vm = vms.find(id);
  if (refusal !== null || vm === undefined)
    throw new HostError(refusal?.code ?? 'vm_not_running', refusal?.message ?? 'there is no such VM on this host');

  await vm.queue.run(() => applyEgress(parts, vm, order));
  return vms.view(vm);
}

/**
 * Runs in the VM's turn. Ignores a policy older than the recorded one, but enforces the recorded
 * one if an earlier call failed to.
 */
async function applyEgress(
  { directory, driver, log }: LifecycleParts,
  vm: OwnedVm,
  { epoch, egress }: EgressOrder,
): Promise<void> {
  if (vm.ending !== null) throw new HostError('superseded', 'the VM is being destroyed');
  // A verb that ran meanwhile may have raised the epoch.
  if (epoch < vm.record.epoch)
    throw new HostError('stale_epoch', `epoch ${epoch} is older than ${vm.record.epoch}, the newest seen for this VM`);
  const recorded = egressOf(vm.record);
  if (egress.revision < recorded.revision && vm.formerEgress === null) return;

  const isRunning = vm.record.status === 'running';
  if (egress.revision >= recorded.revision) {
    const changed = { ...vm.record, spec: { ...vm.record.spec, egress } };
    await directory.write(changed);
    if (isRunning) vm.formerEgress ??= recorded.revision;
    vm.record = changed;
  }
  if (!isRunning) return;

  const { mode, revision } = egressOf(vm.record);
  await driver.setEgress(vm.record.driverState ?? {}, egressOf(vm.record));
  vm.formerEgress = null;
  log.info({ vmId: vm.id, epoch, mode, revision }, 'an egress policy is in force');
}

/**
 * Enforces the recorded policy on a VM of an earlier daemon, whose rules are still in the kernel.
 * Never rejects: if the policy cannot be enforced, these rules stay in force, and the view reports
 * revision 0, so that the control plane repeats the change.
 */
export async function enforceRecorded({ driver, log }: LifecycleParts, vm: OwnedVm): Promise<void> {
  const { egress } = vm.record.spec;
  if (egress === undefined) return;
  try {
    await driver.setEgress(vm.record.driverState ?? {}, egress);
  } catch (error) {
    vm.formerEgress = 0;
    log.error(
      { vmId: vm.id, err: error, mode: egress.mode, revision: egress.revision },
      'the egress policy of an adopted VM could not be enforced: the rules of the earlier daemon stay in force',
    );
  }
}
