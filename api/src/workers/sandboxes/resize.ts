// The durable step that grows a sandbox's machine while it runs: ask the host until it answers for
// good, commit the size that was verified. Safe to run again from the start at any point and beside
// itself: the host's verb is idempotent and fenced, so is the commit.
import type { Allocation } from '@berth/contract/sandboxes/machine-sizes.ts';
import type { Reason } from '../../rules/sandboxes/machine-death.ts';
import { roomFor } from '../../rules/hosts/placement.ts';
import type { LifecycleStep } from '../../services/context/lifecycle-port.ts';
import { liveTargetOf, settleResize } from '../../services/sandboxes/resize.ts';
import { askHost, lookAtVm } from '../hosts/verdict.ts';
import { settleStep, type StepContext } from '../steps/step-context.ts';
import { sizeOf } from '../hosts/vm-spec.ts';

/** `verified` null: nothing is known but what the allocation says already. */
type Grown = { kind: 'void' } | { kind: 'grown'; verified: Allocation | null; deferred: Reason | null };

/**
 * Brings an awake sandbox to its pending allocation as far as that grows, or leaves that for the
 * next wake and says why.
 */
export async function resize(context: StepContext, step: LifecycleStep): Promise<void> {
  const grown = await growMachine(context, step);
  if (grown.kind === 'void') return;
  const { verified, deferred } = grown;
  await settleStep(context, 'resize', (trx) => settleResize(trx, { ...step, verified, deferred }));
}

async function growMachine(context: StepContext, step: LifecycleStep): Promise<Grown> {
  const verdict = await askHost(context, step, {
    kind: 'resize',
    what: 'resizing a machine',
    askedAt: (sandbox) => sandbox.updated_at,
    ask: async (host, sandbox, signal) => {
      const target = liveTargetOf(sandbox);
      if (target === null) throw new Error(`sandbox ${sandbox.id} is being resized to nothing`);
      const vm = await host.resizeVm(sandbox.id, { epoch: step.epoch, size: roomFor(target) }, { signal });
      return sizeOf(vm) ?? target;
    },
  });
  if (verdict.kind === 'void') return verdict;
  if (verdict.kind === 'answered') return { kind: 'grown', verified: verdict.answer, deferred: null };
  const vm = await lookAtVm(context, verdict.host, step.sandboxId);
  // Some of it may have worked, or only the answer was lost.
  const verified = vm?.status === 'running' ? sizeOf(vm) : null;
  return { kind: 'grown', verified, deferred: { code: verdict.code, message: verdict.message } };
}
