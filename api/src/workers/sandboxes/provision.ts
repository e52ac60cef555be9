// Durable step: creates a sandbox's VM. Calls the host until the outcome is final, then commits it.
// Can be repeated from the start, also concurrently: host call and commit are idempotent and
// fenced.
import type { LifecycleStep } from '../../services/context/lifecycle-port.ts';
import { settleAwake } from '../../services/clones/clone.ts';
import { dataKeyOf } from '../../services/sandboxes/data-key.ts';
import { transitionSandbox } from '../../services/sandboxes/transition.ts';
import { sendNewerEgress } from '../hosts/egress.ts';
import { callHost } from '../hosts/host-call.ts';
import { SYSTEM, settleStep, type StepContext } from '../steps/step-context.ts';
import { vmSpecOf } from '../hosts/vm-spec.ts';

/**
 * Moves a sandbox from `provisioning` to `ready`, `running` with a clone step, or `failed`. Changes
 * nothing if its epoch is no longer in force.
 */
export async function provision(context: StepContext, step: LifecycleStep): Promise<void> {
  const outcome = await callHost(context, step, {
    kind: 'provision',
    what: 'creating a VM',
    requestedAt: (sandbox) => sandbox.status_changed_at,
    send: async (host, sandbox, signal) => {
      const dataKey = await dataKeyOf(context, sandbox.id);
      const order = { epoch: step.epoch, spec: vmSpecOf(sandbox), dataKey };
      return sendNewerEgress(context, host, await host.createVm(sandbox.id, order, { signal }), signal);
    },
  });
  if (outcome.kind === 'void') return;
  const { sandbox } = await settleStep(context, 'provision', (trx) =>
    outcome.kind === 'answered'
      ? settleAwake(trx, context.lifecycle, { ...step, actor: SYSTEM })
      : // A failure takes a new epoch: a VM made later under the old one is destroyed.
        transitionSandbox(trx, {
          ...step,
          to: 'failed',
          newEpoch: true,
          reason: outcome.reason,
          actor: SYSTEM,
        }),
  );
  if (sandbox?.status === 'running') context.lifecycle.started();
}
