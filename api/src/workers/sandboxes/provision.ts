// The durable step that makes a sandbox's machine: ask the host until it answers for good, then
// commit what came of it. Safe to run again from the start at any point and beside itself: the
// host's verb is idempotent and fenced, so is the commit.
import type { LifecycleStep } from '../../services/context/lifecycle-port.ts';
import { settleAwake } from '../../services/clones/clone.ts';
import { transitionSandbox } from '../../services/sandboxes/transition.ts';
import { askHost } from '../hosts/verdict.ts';
import { SYSTEM, settleStep, type StepContext } from '../steps/step-context.ts';
import { vmSpecOf } from '../hosts/vm-spec.ts';

/**
 * Brings a sandbox from `provisioning` to `ready`, to `running` with the step that clones its
 * repository, or to `failed`, or leaves it alone when its epoch is no longer in force.
 */
export async function provision(context: StepContext, step: LifecycleStep): Promise<void> {
  const verdict = await askHost(context, step, {
    kind: 'provision',
    what: 'making a machine',
    askedAt: (sandbox) => sandbox.status_changed_at,
    ask: (host, sandbox, signal) =>
      host.createVm(sandbox.id, { epoch: step.epoch, spec: vmSpecOf(sandbox) }, { signal }),
  });
  if (verdict.kind === 'void') return;
  const { sandbox } = await settleStep(context, 'provision', (trx) =>
    verdict.kind === 'answered'
      ? settleAwake(trx, context.lifecycle, { ...step, actor: SYSTEM })
      : // A failure takes a new epoch: whatever the host still makes under the old one is void and
        // gets reaped.
        transitionSandbox(trx, {
          ...step,
          to: 'failed',
          newEpoch: true,
          reason: { code: verdict.code, message: verdict.message },
          actor: SYSTEM,
        }),
  );
  if (sandbox?.status === 'running') context.lifecycle.started();
}
