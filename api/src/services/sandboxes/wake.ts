// Wake: restores a stopped sandbox, or a failed one with a disk, on its host with its pending
// allocation. Writes intent and durable step; workers/sandboxes/wake.ts does the rest.
import { TRANSITION_WAIT_MS } from '@berth/contract/route/limits.ts';
import { SANDBOX_STATES } from '@berth/contract/sandboxes/state.ts';
import type { Allocation } from '@berth/contract/sandboxes/machine-sizes.ts';
import type { Actor } from '../../rules/access/access.ts';
import { CodedError } from '../../rules/coded-error.ts';
import { largerOf } from '../../rules/sandboxes/allocation-target.ts';
import { growth, roomFor } from '../../rules/hosts/placement.ts';
import type { ActivityActor } from '../../store/activity/activity.ts';
import { allocationOf, findSandbox, pendingOf } from '../../store/sandboxes/sandboxes.ts';
import type { ChangeWatch } from '../../store/database/changes.ts';
import type { DatabaseTransaction, SandboxRow } from '../../store/database/schema.ts';
import type { ServiceContext } from '../context/context.ts';
import { withCapacity } from '../hosts/capacity-wait.ts';
import { capacityError, roomOnOwnHost, type RoomOnHost } from '../hosts/placement.ts';
import { requireConcurrentRoom } from '../billing/plans.ts';
import { requireLegal } from '../../rules/sandboxes/action.ts';
import { commitIntent, type Intent } from './intent.ts';
import { transitionSandbox, type Transition, type TransitionResult } from './transition.ts';
import { waitWhileInTransition, type TransitionAnswer } from './wait.ts';
import { requireMachineHours } from '../usage/caps.ts';

/**
 * Wakes a sandbox. Repeating it during the wake gives the same response and starts nothing. A wake
 * during the sleep is only early: it waits for the snapshot. Throws `wake_not_possible` and the
 * errors of {@link requestWake}.
 */
export async function wakeSandbox(
  context: ServiceContext,
  actor: Actor,
  sandboxId: string,
  answer: TransitionAnswer,
): Promise<SandboxRow> {
  const watch = context.changes.watch(sandboxId);
  // Both waits together take as long as one.
  const signal = AbortSignal.any([answer.signal, AbortSignal.timeout(TRANSITION_WAIT_MS)]);
  try {
    const waking = answer.respondAsync
      ? await requestWake(context, actor, sandboxId)
      : await requestWakeAfterSleep(context, watch, actor, sandboxId, signal);
    return answer.respondAsync ? waking : await waitWhileInTransition(context, watch, waking, signal);
  } finally {
    watch.close();
  }
}

/** As {@link requestWake} after the end of a sleep. Another caller may wake the sandbox first. */
async function requestWakeAfterSleep(
  context: ServiceContext,
  watch: ChangeWatch,
  actor: Actor,
  sandboxId: string,
  signal: AbortSignal,
): Promise<SandboxRow> {
  let asleep: SandboxRow | undefined;
  for (let repeated = false; ;) {
    try {
      return await withCapacity(context, { respondAsync: false, signal }, () => requestWake(context, actor, sandboxId));
    } catch (error) {
      if (!(error instanceof CodedError) || error.code !== 'wake_not_possible' || signal.aborted) throw error;
      const sandbox = await findSandbox(context.db, sandboxId);
      if (sandbox === undefined) throw error;
      if (sandbox.status === 'sleeping') {
        asleep = sandbox;
        await watch.next(signal);
        continue;
      }
      if (asleep !== undefined && SANDBOX_STATES[sandbox.status].awake && sandbox.epoch > asleep.epoch) return sandbox;
      // The sleep may have ended since the refusal.
      if (repeated) throw error;
      repeated = true;
    }
  }
}

/**
 * Starts to wake a sandbox without waiting (wait.ts waits; open the watch first). Throws
 * `wake_not_possible`, `no_active_plan`, `concurrent_sandbox_limit`, `machine_hour_limit`,
 * `insufficient_capacity` or `host_unavailable`, and then changes nothing.
 */
export async function requestWake(
  context: ServiceContext,
  actor: ActivityActor,
  sandboxId: string,
  details: Record<string, unknown> = {},
): Promise<SandboxRow> {
  return await commitIntent(context, sandboxId, async (trx, before) => {
    if (requireLegal('wake', before.status) === 'done') return { sandbox: before, enqueued: false };
    return await intendWake(context, trx, actor, before, details);
  });
}

async function intendWake(
  context: ServiceContext,
  trx: DatabaseTransaction,
  actor: ActivityActor,
  before: SandboxRow,
  details: Record<string, unknown>,
): Promise<Intent> {
  if (before.wakes_from === null) {
    throw new CodedError(
      'wake_not_possible',
      `the sandbox is ${before.status} and has neither a snapshot nor a disk to wake from`,
    );
  }
  await requireConcurrentRoom(context, trx, before.org_id);
  await requireMachineHours(context, trx, { orgId: before.org_id, projectId: before.project_id });
  let pending = pendingOf(before);
  let room = await roomToWake(trx, before, pending);
  if (room.kind === 'short' && before.pending_recommended) {
    // A recommendation was not requested, so it must not make a wake fail. The next sample may
    // recommend it again.
    pending = null;
    room = await roomToWake(trx, before, pending);
  }
  if (room.kind !== 'there') throw capacityError(room);
  const { outcome, sandbox } = await transitionSandbox(trx, {
    sandboxId: before.id,
    epoch: before.epoch,
    to: 'waking',
    newEpoch: true,
    resizing: pending !== null,
    // Written only to clear it: rewriting a recommendation would turn it into a request.
    pending: pending === null ? null : undefined,
    actor,
    details: { ...(pending === null ? {} : { allocation: pending }), ...details },
  });
  if (outcome !== 'changed') throw new Error(`a wake from ${before.status} was ${outcome}`);
  await context.lifecycle.enqueue(trx, 'wake', { sandboxId: sandbox.id, epoch: sandbox.epoch });
  return { sandbox, enqueued: true };
}

/**
 * Stops an awake sandbox whose host put its VM to sleep, and wakes it, in the given transaction.
 * Its plan and its host had room for it.
 */
export async function wakeAgain(
  { lifecycle }: { lifecycle: Pick<ServiceContext['lifecycle'], 'enqueue'> },
  trx: DatabaseTransaction,
  transition: Omit<Transition, 'to'>,
): Promise<TransitionResult> {
  const stopped = await transitionSandbox(trx, { ...transition, to: 'stopped' });
  if (stopped.outcome !== 'changed') return stopped;
  const { id, pending_recommended: recommended } = stopped.sandbox;
  const result = await transitionSandbox(trx, {
    sandboxId: id,
    epoch: transition.epoch,
    to: 'waking',
    newEpoch: true,
    resizing: pendingOf(stopped.sandbox) !== null && !recommended,
    pending: recommended ? null : undefined,
    actor: transition.actor,
  });
  if (result.outcome === 'changed')
    await lifecycle.enqueue(trx, 'wake', { sandboxId: id, epoch: result.sandbox.epoch });
  return result;
}

async function roomToWake(
  trx: DatabaseTransaction,
  before: SandboxRow,
  pending: Allocation | null,
): Promise<RoomOnHost> {
  const allocated = allocationOf(before);
  // A snapshot can only be restored in its own size; reductions are applied afterwards.
  const target = pending === null ? allocated : largerOf(allocated, pending);
  const { vcpu, memoryMib } = roomFor(target);
  return await roomOnOwnHost(trx, before, { vcpu, memoryMib, ...growth(allocated, target) });
}
