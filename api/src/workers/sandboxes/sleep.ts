// The durable step that puts a sandbox's machine to sleep: ask the host until it answers for good,
// see what is left where it does not, commit what came of it. Safe to run again from the start at
// any point and beside itself: the host's verb is idempotent and fenced, so is the commit.
import type { Allocation } from '@berth/contract/sandboxes/machine-sizes.ts';
import type { VmView } from '@berth/protocol/host.ts';
import { HOST_LOST, deathOf, MACHINE_LOST, type Reason } from '../../rules/sandboxes/machine-death.ts';
import type { LifecycleStep } from '../../services/context/lifecycle-port.ts';
import { settleAwake } from '../../services/clones/clone.ts';
import { transitionSandbox, type Transition } from '../../services/sandboxes/transition.ts';
import type { WakeSource } from '../../store/sandboxes/sandboxes.ts';
import { askHost, lookAtVm } from '../hosts/verdict.ts';
import { SYSTEM, settleStep, type StepContext } from '../steps/step-context.ts';
import { remainsOf, sizeOf } from '../hosts/vm-spec.ts';

/**
 * `asleep`: captured. `runs-on`: it could not be. `gone`: its machine is no more, or nobody can say
 * what it is.
 */
type Captured =
  | { kind: 'void' }
  | { kind: 'asleep'; wakesFrom: WakeSource | null; size: Allocation | null }
  | { kind: 'runs-on'; reason: Reason }
  | { kind: 'gone'; reason: Reason; wakesFrom: WakeSource | null };

/**
 * Brings a sandbox from `sleeping` to `stopped`, back to awake, or to `failed`, or leaves it alone
 * when its epoch is no longer in force.
 */
export async function sleep(context: StepContext, step: LifecycleStep): Promise<void> {
  const captured = await captureMachine(context, step);
  if (captured.kind === 'void') return;
  const { sandbox } = await settleStep(context, 'sleep', (trx) =>
    captured.kind === 'runs-on'
      ? settleAwake(trx, context.lifecycle, { ...step, actor: SYSTEM, reason: captured.reason })
      : transitionSandbox(trx, { ...step, actor: SYSTEM, ...changeOf(captured) }),
  );
  if (sandbox?.status === 'running') context.lifecycle.started();
}

async function captureMachine(context: StepContext, step: LifecycleStep): Promise<Captured> {
  const verdict = await askHost(context, step, {
    kind: 'sleep',
    what: 'putting a machine to sleep',
    askedAt: (sandbox) => sandbox.status_changed_at,
    ask: (host, sandbox, signal) => host.sleepVm(sandbox.id, { epoch: step.epoch }, { signal }),
  });
  if (verdict.kind === 'void') return verdict;
  if (verdict.kind === 'answered') return judge(verdict.answer, '');
  return judge(await lookAtVm(context, verdict.host, step.sandboxId), verdict.message);
}

/** What the machine's state means for its sandbox; `message` says why it is not simply asleep. */
function judge(vm: VmView | null | undefined, message: string): Captured {
  switch (vm?.status) {
    case 'asleep':
      return { kind: 'asleep', wakesFrom: remainsOf(vm), size: sizeOf(vm) };
    case 'running':
      return { kind: 'runs-on', reason: { code: 'sleep_failed', message } };
    case 'dead':
      return { kind: 'gone', reason: deathOf(vm), wakesFrom: remainsOf(vm) };
    default:
      // What a host that does not answer, or is still at it, comes to in the end is seen when it is
      // looked at: workers/hosts/health.ts.
      return vm === null
        ? { kind: 'gone', reason: MACHINE_LOST, wakesFrom: null }
        : { kind: 'gone', reason: HOST_LOST, wakesFrom: 'disk' };
  }
}

function changeOf(
  captured: Extract<Captured, { kind: 'asleep' | 'gone' }>,
): Pick<Transition, 'to' | 'reason' | 'wakesFrom' | 'allocated' | 'newEpoch'> {
  if (captured.kind === 'asleep')
    return { to: 'stopped', wakesFrom: captured.wakesFrom, allocated: captured.size ?? undefined };
  // A failure takes a new epoch: what the host may still be doing under the old one is void.
  return { to: 'failed', newEpoch: true, reason: captured.reason, wakesFrom: captured.wakesFrom };
}
