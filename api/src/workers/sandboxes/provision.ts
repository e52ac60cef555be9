// The durable step that makes a sandbox's machine: ask the host until it answers for good, then
// commit what came of it. Safe to run again from the start at any point and beside itself: the
// host's verb is idempotent and fenced, so is the commit.
import { DBOS } from '@dbos-inc/dbos-sdk';
import type { LifecycleStep } from '../../services/context/lifecycle-port.ts';
import { settleAwake } from '../../services/clones/clone.ts';
import { transitionSandbox } from '../../services/sandboxes/transition.ts';
import { crashPoint } from '../steps/crash-point.ts';
import { askHost } from '../hosts/verdict.ts';
import { stepKindOf } from '../queue/queue.ts';
import { SYSTEM, untilCommitted, type StepContext } from '../steps/step-context.ts';
import { vmSpecOf } from '../hosts/vm-spec.ts';

/** `void`: a newer intent (a destroy) is in force, or the work is done already. */
type Made = { kind: 'made' } | { kind: 'void' } | { kind: 'failed'; code: string; message: string };

/**
 * Brings a sandbox from `provisioning` to `ready`, to `running` with the step that clones its
 * repository, or to `failed`, or leaves it alone when its epoch is no longer in force.
 */
export async function provision(context: StepContext, step: LifecycleStep): Promise<void> {
  crashPoint('provision:claimed');
  const made = await DBOS.runStep(() => makeMachine(context, step), { name: 'makeMachine' });
  crashPoint('provision:made-recorded');
  if (made.kind === 'void') return;
  await DBOS.runStep(() => settle(context, step, made), { name: 'settle' });
  crashPoint('provision:settled-recorded');
}

async function makeMachine(context: StepContext, step: LifecycleStep): Promise<Made> {
  const verdict = await askHost(context, step, {
    what: 'making a machine',
    stands: (sandbox) => stepKindOf(sandbox) === 'provision',
    askedAt: (sandbox) => sandbox.status_changed_at,
    ask: async (host, sandbox, signal) => {
      crashPoint('provision:looked-up');
      await host.createVm(sandbox.id, { epoch: step.epoch, spec: vmSpecOf(sandbox) }, { signal });
      crashPoint('provision:made');
    },
  });
  if (verdict.kind === 'answered') return { kind: 'made' };
  if (verdict.kind === 'void') return verdict;
  return { kind: 'failed', code: verdict.code, message: verdict.message };
}

async function settle(
  context: StepContext,
  step: LifecycleStep,
  made: Exclude<Made, { kind: 'void' }>,
): Promise<string> {
  const { outcome, sandbox } = await untilCommitted(context, 'settling a new machine', () =>
    context.db.transaction().execute(async (trx) => {
      // A failure takes a new epoch: should the host still be at work on the old one, what it makes
      // is void and gets reaped.
      const result = await (made.kind === 'made'
        ? settleAwake(trx, context.lifecycle, { ...step, actor: SYSTEM })
        : transitionSandbox(trx, {
            ...step,
            to: 'failed',
            newEpoch: true,
            reason: { code: made.code, message: made.message },
            actor: SYSTEM,
          }));
      crashPoint('provision:written');
      return result;
    }),
  );
  crashPoint('provision:settled');
  if (sandbox?.status === 'running') context.lifecycle.cloneStarted();
  return outcome;
}
