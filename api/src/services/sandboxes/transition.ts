// The only writer of a sandbox's status: fenced by its epoch, checked against the contract's state
// table, and committed with its usage interval, activity row and change notice.
import type { ActivityKind } from '@berth/contract/route/activity-kinds.ts';
import { SANDBOX_STATES, type SandboxStatus } from '@berth/contract/sandboxes/state.ts';
import type { Allocation } from '@berth/contract/sandboxes/machine-sizes.ts';
import { outstanding, sameSize } from '../../rules/sandboxes/allocation-target.ts';
import { destroyHolds, type DestroyHolds } from '../../rules/sandboxes/destroy-holds.ts';
import { insertActivity, type ActivityActor } from '../../store/activity/activity.ts';
import { deleteMetricsSamples } from '../../store/metrics/samples.ts';
import { writeCloneOutput } from '../../store/sandboxes/clone-outputs.ts';
import { deleteDataKey } from '../../store/sandboxes/data-keys.ts';
import { deleteVariables } from '../../store/sandboxes/variables.ts';
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
import { loseTurns } from '../agents/records/views.ts';
import { endSessions, stopBridges } from '../../store/agents/sessions.ts';
import { closeUsageInterval, openUsageInterval } from '../../store/usage/usage.ts';

/** `pending` follows from a given `allocated`: the part of the target not reached stays pending. */
export interface Transition extends SizeChange {
  sandboxId: string;
  /** Epoch for which the caller acts. */
  epoch: number;
  to: SandboxStatus;
  /** Required with `failed`; shown to callers as `statusReason`. */
  reason?: { code: string; message: string } | undefined;
  actor: ActivityActor;
  /** True for a new intent: raises the epoch by one, which voids steps of the old one. */
  newEpoch?: boolean | undefined;
  /** State left for a wake. Absent: none, except that a wake in progress keeps its source. */
  wakesFrom?: WakeSource | null | undefined;
  /** The step that begins resizes to the pending allocation. */
  resizing?: boolean | undefined;
  /** Source of a successful wake; `reason`: why it was not the snapshot. */
  woke?: { from: WakeSource; reason: string | null } | undefined;
  /** The VM's last proof of life, at which a usage interval ends. Absent: now. */
  lastAliveAt?: Date | null | undefined;
  /** Overrides the event kind implied by the two statuses, with additional details. */
  kind?: ActivityKind | undefined;
  details?: Record<string, unknown> | undefined;
}

/**
 * `changed`: written in the transaction. `already`: the sandbox has that status and epoch; nothing
 * written. `void`: another epoch is in force, the transition is illegal, or there is no such
 * sandbox; nothing written, and the caller's step is over.
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

/** Events determined by the previous status rather than the new one. */
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

/** Changes a sandbox's status in the given transaction, or returns why not. Idempotent. */
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
  if (to === 'failed' || to === 'deleted' || transition.woke?.from === 'disk') await loseTurns(trx, sandbox.id);
  if (transition.woke?.from === 'disk') await stopBridges(trx, sandbox.id, sandbox.epoch);
  if (to === 'destroying' || to === 'deleted') {
    await deleteVariables(trx, sandbox.id);
    await writeCloneOutput(trx, sandbox.id, null);
  }
  if (to === 'deleted') {
    await endSessions(trx, sandbox.id);
    await deleteMetricsSamples(trx, sandbox.id);
    await deleteDataKey(trx, sandbox.id);
  }
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
 * Pending allocation once the VM's actual size is in force: the part of the last requested size
 * that differs. undefined keeps the pending one, whoever requested it.
 */
export function pendingBeside(before: SandboxRow, inForce: Allocation): Allocation | null | undefined {
  const pending = pendingOf(before);
  const left = outstanding(pending ?? allocationOf(before), inForce);
  return left !== null && pending !== null && sameSize(left, pending) ? undefined : left;
}

/**
 * End of metering: the last proof of life, or an ephemeral sandbox's expiry if earlier (spec:
 * "bills until the TTL"); null: now. Future instants count as now.
 */
function endOfMetering(lastAliveAt: Date | null, expiresAt: Date | null): Date | null {
  if (lastAliveAt === null || expiresAt === null) return lastAliveAt ?? expiresAt;
  return lastAliveAt < expiresAt ? lastAliveAt : expiresAt;
}

/**
 * Records the remains of a VM that does not run and, unless null, the reason, without changing the
 * status. `void` if another epoch is in force, or the sandbox has a VM.
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
  const { reservesCompute, reservesDisk, settled } = SANDBOX_STATES[before.status];
  if (!settled || reservesCompute || !reservesDisk) return 'void';
  const after = await writeSandboxRemains(trx, before.id, {
    wakesFrom: found.wakesFrom,
    reason: found.reason ?? undefined,
  });
  // A lost disk deserves an activity row; an unusable snapshot is reported by the wake that does
  // without it.
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
