// Sleep: a persistent sandbox is captured and its machine released, an ephemeral one ends. Writes
// intent and durable step; workers/sleep.ts does the rest.
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
 * Puts a sandbox to sleep; one that sleeps, or is going to, gives the same answer and starts
 * nothing. Throws `sandbox_state_conflict`.
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
   * Asked with the sandbox's row locked, in that transaction; false leaves it awake. What was true
   * when it was looked at may be so no more.
   */
  wanted(sandbox: SandboxRow, trx: DatabaseTransaction): boolean | Promise<boolean>;
  /** What the activity feed says beside the change of status, e.g. why. */
  details?: Record<string, unknown>;
}

/**
 * Puts a sandbox to sleep without waiting for it. Resolves with its row as it is then: unchanged
 * when it is not awake, or not wanted to sleep.
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
