// Sends the egress policy of a sandbox's row to the host of its VM.
import { HostError } from '../../hosts/error.ts';
import type { HostClient } from '../../hosts/client.ts';
import type { VmView } from '@berth/protocol/host.ts';
import { egressOf, findSandbox } from '../../store/sandboxes/sandboxes.ts';
import type { StepContext } from '../steps/step-context.ts';

/** Does nothing if the epoch is no longer in force, or the VM has the policy of the row. */
export async function sendEgress(
  { db, log }: StepContext,
  host: HostClient,
  { id, epoch, egressRevision = 0 }: Pick<VmView, 'id' | 'epoch' | 'egressRevision'>,
  signal: AbortSignal,
): Promise<void> {
  const sandbox = await findSandbox(db, id);
  if (sandbox?.epoch !== epoch || sandbox.egress_revision <= egressRevision) return;
  await host.setEgress(id, { epoch, egress: egressOf(sandbox) }, { signal });
  log.info({ sandboxId: id, revision: sandbox.egress_revision }, 'set the egress policy of a VM');
}

/**
 * Sends a policy that changed while the host made or woke the VM, before the sandbox is awake. The
 * reconciler repeats what the host refuses.
 */
export async function sendNewerEgress(
  context: StepContext,
  host: HostClient,
  vm: VmView,
  signal: AbortSignal,
): Promise<VmView> {
  try {
    await sendEgress(context, host, vm, signal);
  } catch (error) {
    if (!(error instanceof HostError)) throw error;
    context.log.warn({ err: error, sandboxId: vm.id }, 'could not set the egress policy of a VM');
  }
  return vm;
}
