// Durable step: puts a sandbox's VM to sleep. Calls the host until the outcome is final, checks the
// VM's state after a failure, then commits. Can be repeated from the start, also concurrently: host
// call and commit are idempotent and fenced.
import type { Allocation } from '@berth/contract/sandboxes/machine-sizes.ts';
import type { VmView } from '@berth/protocol/host.ts';
import { HOST_LOST, deathOf, failureOf, VM_LOST, type Reason } from '../../rules/sandboxes/machine-death.ts';
import type { LifecycleStep } from '../../services/context/lifecycle-port.ts';
import { settleAwake } from '../../services/clones/clone.ts';
import { UnsealError } from '../../services/context/sealed.ts';
import { dataKeyOf } from '../../services/sandboxes/data-key.ts';
import { transitionSandbox, type Transition } from '../../services/sandboxes/transition.ts';
import type { WakeSource } from '../../store/sandboxes/sandboxes.ts';
import { callHost, findVmOnHost } from '../hosts/host-call.ts';
import { SYSTEM, settleStep, type StepContext } from '../steps/step-context.ts';
import { remainsOf, sizeOf } from '../hosts/vm-spec.ts';

/**
 * `asleep`: captured. `runs-on`: capture failed, the VM still runs. `gone`: the VM is gone, or its
 * state unknown.
 */
type Captured =
  | { kind: 'void' }
  | { kind: 'asleep'; wakesFrom: WakeSource | null; size: Allocation | null }
  | { kind: 'runs-on'; reason: Reason }
  | { kind: 'gone'; reason: Reason; wakesFrom: WakeSource | null };

/**
 * Moves a sandbox from `sleeping` to `stopped`, back to awake, or to `failed`. Changes nothing if
 * its epoch is no longer in force.
 */
export async function sleep(context: StepContext, step: LifecycleStep): Promise<void> {
  const captured = await sleepVm(context, step);
  if (captured.kind === 'void') return;
  const { sandbox } = await settleStep(context, 'sleep', (trx) =>
    captured.kind === 'runs-on'
      ? settleAwake(trx, context.lifecycle, { ...step, actor: SYSTEM, reason: captured.reason })
      : transitionSandbox(trx, { ...step, actor: SYSTEM, ...changeOf(captured) }),
  );
  if (sandbox?.status === 'running') context.lifecycle.started();
}

async function sleepVm(context: StepContext, step: LifecycleStep): Promise<Captured> {
  const outcome = await callHost(context, step, {
    kind: 'sleep',
    what: 'putting a VM to sleep',
    requestedAt: (sandbox) => sandbox.status_changed_at,
    send: async (host, sandbox, signal) => {
      // The host holds the key while the VM runs: a lost secret key must not keep it running.
      const dataKey = await dataKeyOf(context, sandbox.id).catch(undefinedIfSealed);
      return host.sleepVm(sandbox.id, { epoch: step.epoch, dataKey }, { signal });
    },
  });
  if (outcome.kind === 'void') return outcome;
  if (outcome.kind === 'answered') return judge(outcome.answer, failureOf('sleep_failed'));
  return judge(await findVmOnHost(context, outcome.host, step.sandboxId), outcome.reason);
}

function undefinedIfSealed(error: unknown): undefined {
  if (!(error instanceof UnsealError)) throw error;
}

/** Outcome for a VM's state; `message` is why the VM is not simply asleep. */
function judge(vm: VmView | null | undefined, { message }: Reason): Captured {
  switch (vm?.status) {
    case 'asleep':
      return { kind: 'asleep', wakesFrom: remainsOf(vm), size: sizeOf(vm) };
    case 'running':
      return { kind: 'runs-on', reason: { code: 'sleep_failed', message } };
    case 'dead':
      return { kind: 'gone', reason: deathOf(vm), wakesFrom: remainsOf(vm) };
    default:
      // workers/hosts/health.ts resolves the state of an unresponsive or still busy host.
      return vm === null
        ? { kind: 'gone', reason: VM_LOST, wakesFrom: null }
        : { kind: 'gone', reason: HOST_LOST, wakesFrom: 'disk' };
  }
}

function changeOf(
  captured: Extract<Captured, { kind: 'asleep' | 'gone' }>,
): Pick<Transition, 'to' | 'reason' | 'wakesFrom' | 'allocated' | 'newEpoch'> {
  if (captured.kind === 'asleep')
    return { to: 'stopped', wakesFrom: captured.wakesFrom, allocated: captured.size ?? undefined };
  // A failure takes a new epoch, which voids any call still in progress on the host.
  return { to: 'failed', newEpoch: true, reason: captured.reason, wakesFrom: captured.wakesFrom };
}
