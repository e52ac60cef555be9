// Durable step: wakes a sandbox's VM. Calls the host until the outcome is final, checks the VM's
// state after a failure, then commits. Can be repeated from the start, also concurrently: host call
// and commit are idempotent and fenced.
import type { Allocation } from '@berth/contract/sandboxes/machine-sizes.ts';
import type { VmView, VmWoke } from '@berth/protocol/host.ts';
import { DISK_LOST, NO_SNAPSHOT, type Reason } from '../../rules/sandboxes/machine-death.ts';
import type { LifecycleStep } from '../../services/context/lifecycle-port.ts';
import { dataKeyOf } from '../../services/sandboxes/data-key.ts';
import { recordDeferred } from '../../services/sandboxes/resize.ts';
import { settleAwake } from '../../services/clones/clone.ts';
import { transitionSandbox, type TransitionResult } from '../../services/sandboxes/transition.ts';
import { allocationOf, lockSandbox, pendingOf, type WakeSource } from '../../store/sandboxes/sandboxes.ts';
import type { DatabaseTransaction } from '../../store/database/schema.ts';
import { sendNewerEgress } from '../hosts/egress.ts';
import { callHost, findVmOnHost } from '../hosts/host-call.ts';
import { SYSTEM, settleStep, type StepContext } from '../steps/step-context.ts';
import { remainsOf, sizeOf, vmSpecOf } from '../hosts/vm-spec.ts';

/** `not-woken`: the VM is unchanged, or has lost its snapshot or disk. */
type Woken =
  | { kind: 'void' }
  | { kind: 'awake'; woke: VmWoke | null; size: Allocation | null }
  | { kind: 'not-woken'; to: 'stopped' | 'failed'; reason: Reason; wakesFrom: WakeSource | null };

/**
 * Moves a sandbox from `waking` to awake, back to `stopped`, or to `failed`. Changes nothing if its
 * epoch is no longer in force.
 */
export async function wake(context: StepContext, step: LifecycleStep): Promise<void> {
  const woken = await wakeVm(context, step);
  if (woken.kind === 'void') return;
  const { sandbox } = await settleStep(context, 'wake', (trx) =>
    woken.kind === 'awake' ? settleWoken(context, trx, step, woken) : settleNotWoken(trx, step, woken),
  );
  if (sandbox?.status === 'running') context.lifecycle.started();
}

async function wakeVm(context: StepContext, step: LifecycleStep): Promise<Woken> {
  const outcome = await callHost(context, step, {
    kind: 'wake',
    what: 'waking a VM',
    requestedAt: (sandbox) => sandbox.status_changed_at,
    send: async (host, sandbox, signal) => {
      const spec = vmSpecOf(sandbox, pendingOf(sandbox) ?? allocationOf(sandbox));
      const dataKey = await dataKeyOf(context, sandbox.id);
      const vm = await host.wakeVm(sandbox.id, { epoch: step.epoch, spec, dataKey }, { signal });
      return sendNewerEgress(context, host, vm, signal);
    },
  });
  if (outcome.kind === 'void') return outcome;
  if (outcome.kind === 'answered') return awake(outcome.answer);
  const { code, message } = outcome.reason;
  if (code === 'nothing_to_wake') return { kind: 'not-woken', to: 'failed', reason: DISK_LOST, wakesFrom: null };
  const vm = await findVmOnHost(context, outcome.host, step.sandboxId);
  // Only the response was lost.
  if (vm?.status === 'running' && vm.epoch === step.epoch) return awake(vm);
  return notWoken(vm, { code: 'wake_failed', message }, outcome.sandbox.wakes_from);
}

function awake(vm: VmView): Woken {
  const { from } = vm.woke ?? {};
  const woke = from === undefined ? null : { from, reason: from === 'disk' ? NO_SNAPSHOT : null };
  return { kind: 'awake', woke, size: sizeOf(vm) };
}

function notWoken(vm: VmView | null | undefined, reason: Reason, wakesFrom: WakeSource | null): Woken {
  if (vm === null) return { kind: 'not-woken', to: 'failed', reason: DISK_LOST, wakesFrom: null };
  if (vm?.status === 'dead') return { kind: 'not-woken', to: 'failed', reason, wakesFrom: remainsOf(vm) };
  return { kind: 'not-woken', to: 'stopped', reason, wakesFrom: vm?.status === 'asleep' ? remainsOf(vm) : wakesFrom };
}

async function settleWoken(
  context: StepContext,
  trx: DatabaseTransaction,
  step: LifecycleStep,
  { woke, size }: Extract<Woken, { kind: 'awake' }>,
): Promise<TransitionResult> {
  const before = await lockSandbox(trx, step.sandboxId);
  if (before === undefined) return { outcome: 'void', sandbox: before };
  const allocated = size ?? pendingOf(before) ?? allocationOf(before);
  const result = await settleAwake(trx, context.lifecycle, {
    ...step,
    actor: SYSTEM,
    allocated,
    woke: woke ?? undefined,
    details: { woke, allocation: allocated },
  });
  if (result.outcome === 'changed' && pendingOf(result.sandbox) !== null)
    await recordDeferred(trx, result.sandbox, 'not_reached', 'the VM did not reach this size at the wake');

  return result;
}

async function settleNotWoken(
  trx: DatabaseTransaction,
  step: LifecycleStep,
  { to, reason, wakesFrom }: Extract<Woken, { kind: 'not-woken' }>,
): Promise<TransitionResult> {
  // A failure takes a new epoch: if the host still wakes the VM under the old one, the VM is put to
  // sleep again.
  return await transitionSandbox(trx, { ...step, to, newEpoch: true, actor: SYSTEM, reason, wakesFrom });
}
