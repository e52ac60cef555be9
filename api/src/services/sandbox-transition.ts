// The one way a sandbox's status changes: fenced by its epoch, checked against the contract's state table, and committed together
// with its usage interval, its activity row and the notice to whoever waits.
import { SANDBOX_STATES, type SandboxStatus } from '@berth/contract/sandbox-state.ts';
import type { ActivityKind } from '@berth/contract/activity.ts';
import { insertActivity, type ActivityActor } from '../store/activity.ts';
import { lockSandbox, writeSandboxStatus } from '../store/sandboxes.ts';
import type { DatabaseTransaction, SandboxRow } from '../store/schema.ts';
import { closeUsageInterval, openUsageInterval } from '../store/usage.ts';

export interface Transition {
  sandboxId: string;
  /** The epoch the caller acts for. */
  epoch: number;
  to: SandboxStatus;
  /** Required with `failed`; shown to callers as `statusReason`. */
  reason?: { code: string; message: string };
  actor: ActivityActor;
  /** True for a new intent: the sandbox's epoch grows by one, which voids what is under way for the old one. */
  newEpoch?: boolean;
}

/**
 * `changed`: committed with the transaction. `already`: the sandbox is in that status of that epoch; nothing written. `void`: another epoch
 * is in force, or the status may not follow the present one, or there is no such sandbox; nothing written, the caller's step is over.
 */
export type TransitionResult =
  | { outcome: 'changed' | 'already'; sandbox: SandboxRow }
  | { outcome: 'void'; sandbox: SandboxRow | undefined };

const ACTIVITY_OF_STATUS: { readonly [status in SandboxStatus]: ActivityKind } = {
  provisioning: 'sandbox_created',
  running: 'sandbox_running',
  ready: 'sandbox_ready',
  failed: 'sandbox_failed',
  destroying: 'sandbox_destroy_requested',
  deleted: 'sandbox_deleted',
};

/** Changes a sandbox's status within the given transaction, or says why not. Repeating it is harmless. */
export async function transitionSandbox(trx: DatabaseTransaction, transition: Transition): Promise<TransitionResult> {
  const before = await lockSandbox(trx, transition.sandboxId);
  if (before === undefined || before.epoch !== transition.epoch) return { outcome: 'void', sandbox: before };
  if (before.status === transition.to) return { outcome: 'already', sandbox: before };
  if (!SANDBOX_STATES[before.status].next.includes(transition.to)) return { outcome: 'void', sandbox: before };

  const sandbox = await writeSandboxStatus(trx, {
    sandboxId: before.id,
    epoch: transition.newEpoch === true ? before.epoch + 1 : before.epoch,
    status: transition.to,
    reason: transition.reason ?? null,
  });
  const wasMetered = SANDBOX_STATES[before.status].metered;
  const isMetered = SANDBOX_STATES[sandbox.status].metered;
  if (!wasMetered && isMetered) await openUsageInterval(trx, sandbox);
  if (wasMetered && !isMetered) await closeUsageInterval(trx, sandbox.id);
  await insertActivity(trx, {
    orgId: sandbox.org_id,
    projectId: sandbox.project_id,
    sandboxId: sandbox.id,
    actor: transition.actor,
    kind: ACTIVITY_OF_STATUS[transition.to],
    details: { from: before.status, to: sandbox.status, ...(transition.reason === undefined ? {} : { reason: transition.reason }) },
  });
  return { outcome: 'changed', sandbox };
}
