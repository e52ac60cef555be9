// Durable step: deletes a sandbox's VM and disk. Calls the host until it confirms, without a time
// limit, then commits. Takes precedence over every other step: its epoch ends their calls at the
// host. Can be repeated at any point.
import { SANDBOX_STATES } from '@berth/contract/sandboxes/state.ts';
import type { HostClient } from '../../hosts/client.ts';
import { HostError } from '../../hosts/error.ts';
import type { LifecycleStep } from '../../services/context/lifecycle-port.ts';
import { transitionSandbox } from '../../services/sandboxes/transition.ts';
import { findSandbox } from '../../store/sandboxes/sandboxes.ts';
import { crashPoint } from '../steps/crash-point.ts';
import { pause, settleStep, SYSTEM, worthLogging, type StepContext } from '../steps/step-context.ts';

export async function destroy(context: StepContext, step: LifecycleStep): Promise<void> {
  const removed = await destroyVm(context, step);
  if (removed === 'void') return;
  await settleStep(context, 'destroy', (trx) => transitionSandbox(trx, { ...step, to: 'deleted', actor: SYSTEM }));
}

async function destroyVm(context: StepContext, step: LifecycleStep): Promise<'gone' | 'void'> {
  const { db, hosts, log, stopping } = context;
  for (let attempt = 0; ; attempt += 1) {
    stopping.throwIfAborted();
    try {
      const sandbox = await findSandbox(db, step.sandboxId);
      if (sandbox === undefined || sandbox.epoch !== step.epoch) return 'void';
      if (!SANDBOX_STATES[sandbox.status].next.includes('deleted')) return 'void';
      crashPoint('destroy:looked-up');
      if (sandbox.host_url !== null) await removeFrom(hosts.at(sandbox.host_url), step, stopping);
      crashPoint('destroy:answered');
      return 'gone';
    } catch (error) {
      stopping.throwIfAborted();
      if (worthLogging(attempt))
        log.warn({ err: error, sandboxId: step.sandboxId, attempt }, 'deleting a VM: retrying');
    }
    await pause(attempt, stopping);
  }
}

async function removeFrom(host: HostClient, step: LifecycleStep, signal: AbortSignal): Promise<void> {
  try {
    await host.destroyVm(step.sandboxId, step.epoch, { signal });
  } catch (error) {
    if (!(error instanceof HostError) || error.code !== 'stale_epoch') throw error;
    // The host has seen a newer epoch than the database has (restored from a backup). Delete the VM
    // all the same.
    const vm = (await host.listVms({ signal })).find((listed) => listed.id === step.sandboxId);
    if (vm !== undefined) await host.destroyVm(vm.id, vm.epoch, { signal });
  }
}
