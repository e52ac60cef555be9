// The durable step that grows a sandbox's machine while it runs: ask the host until it answers for
// good, commit the size that was verified. Safe to run again from the start at any point and beside
// itself: the host's verb is idempotent and fenced, so is the commit.
import type { Allocation } from '@berth/contract/sandboxes/machine-sizes.ts';
import { DBOS } from '@dbos-inc/dbos-sdk';
import type { Reason } from '../../rules/sandboxes/machine-death.ts';
import { roomFor } from '../../rules/hosts/placement.ts';
import type { LifecycleStep } from '../../services/context/lifecycle-port.ts';
import { liveTargetOf, settleResize } from '../../services/sandboxes/resize.ts';
import { crashPoint } from '../steps/crash-point.ts';
import { askHost, lookAtVm } from '../hosts/verdict.ts';
import { stepKindOf } from '../queue/queue.ts';
import { untilCommitted, type StepContext } from '../steps/step-context.ts';
import { sizeOf } from '../hosts/vm-spec.ts';

/** `verified` null: nothing is known but what the allocation says already. */
type Grown = { kind: 'void' } | { kind: 'grown'; verified: Allocation | null; deferred: Reason | null };

/**
 * Brings an awake sandbox to its pending allocation as far as that grows, or leaves that for the
 * next wake and says why.
 */
export async function resize(context: StepContext, step: LifecycleStep): Promise<void> {
  crashPoint('resize:claimed');
  const grown = await DBOS.runStep(() => growMachine(context, step), { name: 'growMachine' });
  crashPoint('resize:grown-recorded');
  if (grown.kind === 'void') return;
  await DBOS.runStep(() => settle(context, step, grown), { name: 'settle' });
  crashPoint('resize:settled-recorded');
}

async function growMachine(context: StepContext, step: LifecycleStep): Promise<Grown> {
  const verdict = await askHost(context, step, {
    what: 'resizing a machine',
    stands: (sandbox) => stepKindOf(sandbox) === 'resize',
    askedAt: (sandbox) => sandbox.updated_at,
    ask: async (host, sandbox, signal) => {
      crashPoint('resize:looked-up');
      const target = liveTargetOf(sandbox);
      if (target === null) throw new Error(`sandbox ${sandbox.id} is being resized to nothing`);
      const vm = await host.resizeVm(sandbox.id, { epoch: step.epoch, size: roomFor(target) }, { signal });
      crashPoint('resize:grown');
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

async function settle(
  context: StepContext,
  step: LifecycleStep,
  grown: Exclude<Grown, { kind: 'void' }>,
): Promise<string> {
  const { verified, deferred } = grown;
  const outcome = await untilCommitted(context, 'settling a resized machine', () =>
    context.db.transaction().execute(async (trx) => {
      const written = await settleResize(trx, { ...step, verified, deferred });
      crashPoint('resize:written');
      return written;
    }),
  );
  crashPoint('resize:settled');
  return outcome;
}
