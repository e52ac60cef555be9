// Sleep: captures a persistent sandbox and releases its VM; ends an ephemeral one. Writes intent
// and durable step; workers/sandboxes/sleep.ts does the rest.
import { SANDBOX_ACTION_RULES } from '@berth/contract/sandboxes/state.ts';
import type { Actor } from '../../rules/access/access.ts';
import type { ActivityActor } from '../../store/activity/activity.ts';
import type { DatabaseTransaction, SandboxRow } from '../../store/database/schema.ts';
import type { ServiceContext } from '../context/context.ts';
import { requireLegal } from '../../rules/sandboxes/action.ts';
import { commitIntent, type Intent, type IntentContext } from './intent.ts';
import { transitionSandbox } from './transition.ts';
import { waitUntilSettled, type TransitionAnswer } from './wait.ts';

/**
 * Puts a sandbox to sleep. Repeating it during or after the sleep gives the same response and
 * starts nothing. Throws `sandbox_state_conflict`.
 */
export async function sleepSandbox(
  context: ServiceContext,
  actor: Actor,
  sandboxId: string,
  answer: TransitionAnswer,
): Promise<SandboxRow> {
  const watch = context.changes.watch(sandboxId);
  try {
    const sandbox = await commitIntent(context, sandboxId, async (trx, before) => {
      if (requireLegal('sleep', before.status) === 'done') return { sandbox: before, enqueued: false };
      return await intendSleep(context, trx, actor, before, {});
    });
    return await waitUntilSettled(context, watch, sandbox, answer);
  } finally {
    watch.close();
  }
}

export interface SleepRequest {
  /**
   * Called in the transaction with the sandbox row locked; false leaves the sandbox awake. Rechecks
   * facts that may have changed since they were read.
   */
  wanted(sandbox: SandboxRow, trx: DatabaseTransaction): boolean | Promise<boolean>;
  /** Additional details of the activity row, e.g. the reason. */
  details?: Record<string, unknown>;
}

/**
 * Starts to put a sandbox to sleep without waiting. Resolves with its row, unchanged if it is not
 * awake or `wanted` refuses.
 */
export async function requestSleep(
  context: IntentContext,
  actor: ActivityActor,
  sandboxId: string,
  request: SleepRequest,
): Promise<SandboxRow> {
  return await commitIntent(context, sandboxId, async (trx, before) => {
    if (SANDBOX_ACTION_RULES.sleep[before.status] !== 'do' || !(await request.wanted(before, trx)))
      return { sandbox: before, enqueued: false };
    return await intendSleep(context, trx, actor, before, request.details ?? {});
  });
}

async function intendSleep(
  context: IntentContext,
  trx: DatabaseTransaction,
  actor: ActivityActor,
  before: SandboxRow,
  details: Record<string, unknown>,
): Promise<Intent> {
  const ends = before.mode === 'ephemeral';
  const { outcome, sandbox } = await transitionSandbox(trx, {
    sandboxId: before.id,
    epoch: before.epoch,
    to: ends ? 'destroying' : 'sleeping',
    newEpoch: true,
    actor,
    kind: 'sandbox_sleep_requested',
    details,
  });
  if (outcome !== 'changed') throw new Error(`a sleep from ${before.status} was ${outcome}`);
  const step = { sandboxId: sandbox.id, epoch: sandbox.epoch };
  await (ends ? context.lifecycle.enqueue(trx, 'destroy', step) : context.lifecycle.enqueue(trx, 'sleep', step));
  return { sandbox, enqueued: true };
}
