// Resize: applies a target at once while stopped; live, or at the next wake, while awake. Writes
// the result of a live step. workers/sandboxes/resize.ts calls the host.
//
//   stopped, failed ── allocated_* at once
//   awake ── growth with capacity ──> resizing ── verified ──> allocated_*, new usage interval
//     │                       (reserved as pending) └── failed ──> pending, allocated_* unchanged
//     └── reduction, or no capacity ──> pending, for the next wake
import type { ResizeBody } from '@berth/contract/sandboxes/lifecycle.ts';
import { SANDBOX_STATES } from '@berth/contract/sandboxes/state.ts';
import type { Allocation } from '@berth/contract/sandboxes/machine-sizes.ts';
import type { Actor } from '../../rules/access/access.ts';
import { largerOf, sameSize, targetOf } from '../../rules/sandboxes/allocation-target.ts';
import { CodedError } from '../../rules/coded-error.ts';
import { describeExcess, growth } from '../../rules/hosts/placement.ts';
import { insertActivity, type ActivityActor } from '../../store/activity/activity.ts';
import { findLargest } from '../../store/hosts/hosts.ts';
import { allocationOf, lockSandbox, pendingOf, writeSandboxSize } from '../../store/sandboxes/sandboxes.ts';
import type { DatabaseTransaction, SandboxRow } from '../../store/database/schema.ts';
import { splitUsageInterval } from '../../store/usage/usage.ts';
import type { ServiceContext } from '../context/context.ts';
import { capacityError, roomOnOwnHost } from '../hosts/placement.ts';
import { requireWithinPlan } from '../billing/plans.ts';
import { requireLegal } from '../../rules/sandboxes/action.ts';
import { commitIntent, type Intent } from './intent.ts';
import { pendingBeside } from './transition.ts';
import { waitUntilSettled, type TransitionAnswer } from './wait.ts';

const SYSTEM: ActivityActor = { kind: 'system', id: null, userId: null };

/**
 * Sets the allocation. Throws `sandbox_state_conflict`, `allocation_out_of_bounds`,
 * `no_active_plan`, `plan_limit`, or `insufficient_capacity` if the host of a stopped sandbox has
 * no room for the disk. An error changes nothing.
 */
export async function resizeSandbox(
  context: ServiceContext,
  actor: Actor,
  sandboxId: string,
  body: ResizeBody,
  answer: TransitionAnswer,
): Promise<SandboxRow> {
  const watch = context.changes.watch(sandboxId);
  try {
    const sandbox = await commitIntent(context, sandboxId, async (trx, before) => {
      requireLegal('resize', before.status);
      const { awake } = SANDBOX_STATES[before.status];
      if (!awake && before.wakes_from === null) {
        throw new CodedError(
          'sandbox_state_conflict',
          `the sandbox is ${before.status} and has neither a snapshot nor a disk to resize`,
        );
      }
      const target = targetOf(allocationOf(before), body);
      await requirePossible(context, trx, before, target);
      return await (awake
        ? resizeAwake(context, trx, actor, before, target)
        : resizeStopped(trx, actor, before, target));
    });
    return await waitUntilSettled(context, watch, sandbox, answer);
  } finally {
    watch.close();
  }
}

async function requirePossible(
  context: ServiceContext,
  trx: DatabaseTransaction,
  before: SandboxRow,
  target: Allocation,
): Promise<void> {
  if (target.diskGb < before.allocated_disk_gb) {
    throw new CodedError(
      'allocation_out_of_bounds',
      `body.diskGb must be at least ${before.allocated_disk_gb}, its current size: a disk cannot shrink`,
    );
  }
  const largest = before.host_id === null ? undefined : await findLargest(trx, before.host_id);
  const excess = largest && describeExcess(target, largest);
  if (excess !== undefined) throw new CodedError('allocation_out_of_bounds', excess);
  await requireWithinPlan(context, trx, before.org_id, target);
}

async function resizeStopped(
  trx: DatabaseTransaction,
  actor: Actor,
  before: SandboxRow,
  target: Allocation,
): Promise<Intent> {
  const present = allocationOf(before);
  // The wake reserves vCPUs and memory; disk space is always reserved.
  const { diskGib } = growth(present, target);
  if (diskGib !== undefined) {
    const room = await roomOnOwnHost(trx, before, { diskGib }, { evenAway: true });
    if (room.kind !== 'there') throw capacityError(room);
  }
  const sandbox = await writeSandboxSize(trx, before.id, {
    epoch: before.epoch,
    allocated: target,
    pending: null,
    resizing: false,
  });
  await noteRequest(trx, actor, before, target, { applied: 'at_once' });
  return { sandbox, enqueued: false };
}

async function resizeAwake(
  context: ServiceContext,
  trx: DatabaseTransaction,
  actor: Actor,
  before: SandboxRow,
  target: Allocation,
): Promise<Intent> {
  const present = allocationOf(before);
  // Voids any step in progress for an older target.
  const epoch = before.resizing ? before.epoch + 1 : before.epoch;
  if (sameSize(present, target)) {
    const sandbox = await writeSandboxSize(trx, before.id, { epoch, pending: null, resizing: false });
    await noteRequest(trx, actor, before, target, { applied: 'nothing_to_do' });
    return { sandbox, enqueued: false };
  }
  const needed = growth(present, target);
  const grows = Object.keys(needed).length > 0;
  const room = grows ? await roomOnOwnHost(trx, before, needed) : undefined;
  if (room?.kind !== 'there') {
    const sandbox = await writeSandboxSize(trx, before.id, { epoch, pending: target, resizing: false });
    await noteRequest(trx, actor, before, target, { applied: 'next_wake' });
    if (room !== undefined) await recordDeferred(trx, sandbox, capacityError(room).code, capacityError(room).message);
    return { sandbox, enqueued: false };
  }
  const sandbox = await writeSandboxSize(trx, before.id, { epoch: before.epoch + 1, pending: target, resizing: true });
  await noteRequest(trx, actor, before, target, { applied: 'live' });
  await context.lifecycle.enqueue(trx, 'resize', { sandboxId: sandbox.id, epoch: sandbox.epoch });
  return { sandbox, enqueued: true };
}

/** Target of a live step, growth alone: reductions wait for the next wake. null: no such step. */
export function liveTargetOf(sandbox: SandboxRow): Allocation | null {
  const pending = pendingOf(sandbox);
  return sandbox.resizing && pending !== null ? largerOf(allocationOf(sandbox), pending) : null;
}

export interface SizeOutcome {
  sandboxId: string;
  epoch: number;
  /** Allocation verified in the guest; null: unknown, which leaves the allocation unchanged. */
  verified: Allocation | null;
  /** Reason why part of the target could not be applied live. */
  deferred: { code: string; message: string } | null;
}

/**
 * Writes the result of a live step in the given transaction: the verified size, a new usage
 * interval if it changed, and the remaining pending size. `void` if another epoch is in force or
 * the sandbox is no longer awake. Idempotent.
 */
export async function settleResize(trx: DatabaseTransaction, outcome: SizeOutcome): Promise<'changed' | 'void'> {
  const before = await lockSandbox(trx, outcome.sandboxId);
  if (
    before === undefined ||
    before.epoch !== outcome.epoch ||
    !before.resizing ||
    !SANDBOX_STATES[before.status].awake
  )
    return 'void';
  const target = pendingOf(before);
  const verified = outcome.verified ?? allocationOf(before);
  const pending = target === null || sameSize(verified, target) ? null : target;
  const sandbox = await writeSandboxSize(trx, before.id, {
    epoch: before.epoch,
    allocated: verified,
    pending,
    resizing: false,
  });
  await recordNewSize(trx, before, sandbox);
  if (outcome.deferred !== null) await recordDeferred(trx, sandbox, outcome.deferred.code, outcome.deferred.message);
  return 'changed';
}

/**
 * Adopts the size found in an awake sandbox's VM without a resize in progress: a step whose
 * response was lost had done its work. `void` if another epoch is in force or a step is running.
 */
export async function adoptSize(
  trx: DatabaseTransaction,
  found: { sandboxId: string; epoch: number; allocation: Allocation },
): Promise<'changed' | 'void'> {
  const before = await lockSandbox(trx, found.sandboxId);
  if (before === undefined || before.epoch !== found.epoch || before.resizing || !SANDBOX_STATES[before.status].awake)
    return 'void';
  if (sameSize(allocationOf(before), found.allocation)) return 'void';
  const sandbox = await writeSandboxSize(trx, before.id, {
    epoch: before.epoch,
    allocated: found.allocation,
    // A withdrawn step may have done its work all the same; the size it was withdrawn for is still
    // the requested one.
    pending: pendingBeside(before, found.allocation),
    resizing: false,
  });
  await recordNewSize(trx, before, sandbox);
  return 'changed';
}

/** Writes the new usage interval and the activity row of an allocation changed while awake. */
async function recordNewSize(trx: DatabaseTransaction, before: SandboxRow, after: SandboxRow): Promise<void> {
  if (sameSize(allocationOf(before), allocationOf(after))) return;
  await splitUsageInterval(trx, after);
  await note(trx, SYSTEM, after, 'sandbox_resized', {
    from: allocationOf(before),
    to: allocationOf(after),
    pending: pendingOf(after),
  });
}

/**
 * Writes the activity row of a target that was deferred to the next wake contrary to the request.
 */
export async function recordDeferred(
  trx: DatabaseTransaction,
  sandbox: SandboxRow,
  code: string,
  message: string,
): Promise<void> {
  await note(trx, SYSTEM, sandbox, 'sandbox_resize_deferred', {
    pending: pendingOf(sandbox),
    reason: { code, message },
  });
}

async function noteRequest(
  trx: DatabaseTransaction,
  actor: Actor,
  before: SandboxRow,
  target: Allocation,
  more: { applied: 'at_once' | 'live' | 'next_wake' | 'nothing_to_do' },
): Promise<void> {
  await note(trx, actor, before, 'sandbox_resize_requested', { from: allocationOf(before), target, ...more });
}

async function note(
  trx: DatabaseTransaction,
  actor: ActivityActor,
  sandbox: SandboxRow,
  kind: 'sandbox_resize_requested' | 'sandbox_resized' | 'sandbox_resize_deferred',
  details: Record<string, unknown>,
): Promise<void> {
  await insertActivity(trx, {
    orgId: sandbox.org_id,
    projectId: sandbox.project_id,
    sandboxId: sandbox.id,
    actor,
    kind,
    details,
  });
}
