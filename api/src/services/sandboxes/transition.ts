// The one way a sandbox's status changes: fenced by its epoch, checked against the contract's state
// table, and committed together with its usage interval, its activity row and the notice to whoever
// waits.
import type { ActivityKind } from '@berth/contract/route/activity-kinds.ts';
import { SANDBOX_STATES, type SandboxStatus } from '@berth/contract/sandboxes/state.ts';
import type { Allocation } from '@berth/contract/sandboxes/machine-sizes.ts';
import { outstanding, sameSize } from '../../rules/sandboxes/allocation-target.ts';
import { destroyHolds, type DestroyHolds } from '../../rules/sandboxes/destroy-holds.ts';
import { insertActivity, type ActivityActor } from '../../store/activity/activity.ts';
import { deleteMetricsSamples } from '../../store/metrics/samples.ts';
import {
  allocationOf,
  lockSandbox,
  pendingOf,
  writeSandboxRemains,
  writeSandboxStatus,
  type SizeChange,
  type WakeSource,
} from '../../store/sandboxes/sandboxes.ts';
import type { DatabaseTransaction, SandboxRow } from '../../store/database/schema.ts';
import { closeUsageInterval, openUsageInterval } from '../../store/usage/usage.ts';

/**
 * `pending` follows from `allocated` where that is given: what was wanted and was not reached is
 * still to come.
 */
export interface Transition extends SizeChange {
  sandboxId: string;
  /** The epoch the caller acts for. */
  epoch: number;
  to: SandboxStatus;
  /** Required with `failed`; shown to callers as `statusReason`. */
  reason?: { code: string; message: string } | undefined;
  actor: ActivityActor;
  /**
   * True for a new intent: the sandbox's epoch grows by one, which voids what is under way for the
   * old one.
   */
  newEpoch?: boolean | undefined;
  /**
   * What is left for a wake. Absent: nothing, but that a wake under way keeps what it started from.
   */
  wakesFrom?: WakeSource | null | undefined;
  /** The step that begins is to reach the pending allocation. */
  resizing?: boolean | undefined;
  /** How it was woken, with the end of a wake. */
  woke?: { from: WakeSource; reason: string | null } | undefined;
  /**
   * When its machine was last known to run; where machine time ends with this transition, it ends
   * then. Absent: now.
   */
  lastAliveAt?: Date | null | undefined;
  /**
   * Another kind of event than the one that goes with the two statuses, and what it says beside
   * them.
   */
  kind?: ActivityKind | undefined;
  details?: Record<string, unknown> | undefined;
}

/**
 * `changed`: committed with the transaction. `already`: the sandbox is in that status of that
 * epoch; nothing written. `void`: another epoch is in force, or the status may not follow the
 * present one, or there is no such sandbox; nothing written, the caller's step is over.
 */
export type TransitionResult =
  | { outcome: 'changed' | 'already'; sandbox: SandboxRow }
  | { outcome: 'void'; sandbox: SandboxRow | undefined };

const ACTIVITY_OF_STATUS: { readonly [status in SandboxStatus]: ActivityKind } = {
  provisioning: 'sandbox_created',
  running: 'sandbox_running',
  ready: 'sandbox_ready',
  sleeping: 'sandbox_sleep_requested',
  stopped: 'sandbox_stopped',
  waking: 'sandbox_wake_requested',
  failed: 'sandbox_failed',
  destroying: 'sandbox_destroy_requested',
  deleted: 'sandbox_deleted',
};

/** Where the status before says more than the new one. */
const ACTIVITY_OF_CHANGE: {
  readonly [before in SandboxStatus]?: { readonly [after in SandboxStatus]?: ActivityKind };
} = {
  sleeping: { running: 'sandbox_sleep_failed', ready: 'sandbox_sleep_failed' },
  waking: {
    running: 'sandbox_woken',
    ready: 'sandbox_woken',
    stopped: 'sandbox_wake_failed',
    failed: 'sandbox_wake_failed',
  },
  failed: { running: 'sandbox_recovered', ready: 'sandbox_recovered', stopped: 'sandbox_recovered' },
};

/**
 * Changes a sandbox's status within the given transaction, or says why not. Repeating it is
 * harmless.
 */
export async function transitionSandbox(trx: DatabaseTransaction, transition: Transition): Promise<TransitionResult> {
  const { to } = transition;
  const before = await lockSandbox(trx, transition.sandboxId);
  if (before === undefined || before.epoch !== transition.epoch) return { outcome: 'void', sandbox: before };
  if (before.status === to) return { outcome: 'already', sandbox: before };
  if (!SANDBOX_STATES[before.status].next.includes(to)) return { outcome: 'void', sandbox: before };

  const wasMetered = SANDBOX_STATES[before.status].metered;
  const isMetered = SANDBOX_STATES[to].metered;
  const sandbox = await writeSandboxStatus(trx, {
    sandboxId: before.id,
    epoch: transition.newEpoch === true ? before.epoch + 1 : before.epoch,
    status: to,
    reason: transition.reason ?? null,
    wakesFrom: transition.wakesFrom ?? (to === 'waking' ? before.wakes_from : null),
    resizing: transition.resizing,
    allocated: transition.allocated,
    pending: transition.allocated === undefined ? transition.pending : pendingBeside(before, transition.allocated),
    woke: transition.woke,
    destroyHolds: to === 'destroying' ? holdsOf(before) : null,
    active: isMetered && !wasMetered,
  });
  if (!wasMetered && isMetered) await openUsageInterval(trx, sandbox);
  if (wasMetered && !isMetered)
    await closeUsageInterval(trx, sandbox.id, endOfMetering(transition.lastAliveAt ?? null, before.expires_at));
  if (to === 'deleted') await deleteMetricsSamples(trx, sandbox.id);
  await insertActivity(trx, {
    orgId: sandbox.org_id,
    projectId: sandbox.project_id,
    sandboxId: sandbox.id,
    actor: transition.actor,
    kind: transition.kind ?? ACTIVITY_OF_CHANGE[before.status]?.[to] ?? ACTIVITY_OF_STATUS[to],
    details: {
      from: before.status,
      to,
      ...(transition.reason === undefined ? {} : { reason: transition.reason }),
      ...transition.details,
    },
  });
  return { outcome: 'changed', sandbox };
}

function holdsOf({ status, status_reason_code: reasonCode, wakes_from: wakesFrom }: SandboxRow): DestroyHolds {
  return destroyHolds({ status, reasonCode, wakesFrom });
}

/**
 * What is pending once the sandbox has the size that its machine was found to have: the last size
 * that was asked for, as far as it is another; undefined for what is pending already, whoever
 * wanted it.
 */
export function pendingBeside(before: SandboxRow, inForce: Allocation): Allocation | null | undefined {
  const pending = pendingOf(before);
  const left = outstanding(pending ?? allocationOf(before), inForce);
  return left !== null && pending !== null && sameSize(left, pending) ? undefined : left;
}

/**
 * The last proof of life, or the expiry of an ephemeral sandbox when that came first (spec: "bills
 * until the TTL"); null: now, unless it is later.
 */
function endOfMetering(lastAliveAt: Date | null, expiresAt: Date | null): Date | null {
  if (lastAliveAt === null || expiresAt === null) return lastAliveAt ?? expiresAt;
  return lastAliveAt < expiresAt ? lastAliveAt : expiresAt;
}

/**
 * Writes what is left of a machine that does not run, and unless it is null, why it does not: what
 * was found, where the status stays as it is. `void` when another epoch is in force, or the sandbox
 * has a machine.
 */
export async function writeRemains(
  trx: DatabaseTransaction,
  found: {
    sandboxId: string;
    epoch: number;
    wakesFrom: WakeSource | null;
    reason: { code: string; message: string } | null;
  },
): Promise<'changed' | 'void'> {
  const before = await lockSandbox(trx, found.sandboxId);
  if (before === undefined || before.epoch !== found.epoch) return 'void';
  const { holdsMachine, holdsDisk, settled } = SANDBOX_STATES[before.status];
  if (!settled || holdsMachine || !holdsDisk) return 'void';
  const after = await writeSandboxRemains(trx, before.id, {
    wakesFrom: found.wakesFrom,
    reason: found.reason ?? undefined,
  });
  // That its disk is gone is worth a row in the feed; that a snapshot is of no use is told by the
  // wake that does without it.
  if (found.reason === null) return 'changed';
  await insertActivity(trx, {
    orgId: after.org_id,
    projectId: after.project_id,
    sandboxId: after.id,
    actor: { kind: 'system', id: null, userId: null },
    kind: 'sandbox_failed',
    details: { from: before.status, to: after.status, reason: found.reason },
  });
  return 'changed';
}
