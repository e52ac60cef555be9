// Durable step: grows a sandbox's VM while it runs. Calls the host until the outcome is final, then
// commits the verified size. Can be repeated from the start, also concurrently: host call and
// commit are idempotent and fenced.
import type { Allocation } from '@berth/contract/sandboxes/machine-sizes.ts';
import type { Reason } from '../../rules/sandboxes/machine-death.ts';
import { sizeFor } from '../../rules/hosts/placement.ts';
import type { LifecycleStep } from '../../services/context/lifecycle-port.ts';
import { liveTargetOf, settleResize } from '../../services/sandboxes/resize.ts';
import { callHost, findVmOnHost } from '../hosts/host-call.ts';
import { settleStep, type StepContext } from '../steps/step-context.ts';
import { sizeOf } from '../hosts/vm-spec.ts';

/** `verified` null: the size is known only from the allocation. */
type ResizeOutcome = { kind: 'void' } | { kind: 'grown'; verified: Allocation | null; deferred: Reason | null };

/**
 * Grows an awake sandbox towards its pending allocation, or leaves the change to the next wake,
 * with the reason.
 */
export async function resize(context: StepContext, step: LifecycleStep): Promise<void> {
  const grown = await resizeVm(context, step);
  if (grown.kind === 'void') return;
  const { verified, deferred } = grown;
  await settleStep(context, 'resize', (trx) => settleResize(trx, { ...step, verified, deferred }));
}

async function resizeVm(context: StepContext, step: LifecycleStep): Promise<ResizeOutcome> {
  const outcome = await callHost(context, step, {
    kind: 'resize',
    what: 'resizing a VM',
    requestedAt: (sandbox) => sandbox.updated_at,
    send: async (host, sandbox, signal) => {
      const target = liveTargetOf(sandbox);
      if (target === null) throw new Error(`sandbox ${sandbox.id} is being resized to nothing`);
      const vm = await host.resizeVm(sandbox.id, { epoch: step.epoch, size: sizeFor(target) }, { signal });
      return sizeOf(vm) ?? target;
    },
  });
  if (outcome.kind === 'void') return outcome;
  if (outcome.kind === 'answered') return { kind: 'grown', verified: outcome.answer, deferred: null };
  const vm = await findVmOnHost(context, outcome.host, step.sandboxId);
  // The resize may have worked in part, or only the response was lost.
  const verified = vm?.status === 'running' ? sizeOf(vm) : null;
  return { kind: 'grown', verified, deferred: outcome.reason };
}
