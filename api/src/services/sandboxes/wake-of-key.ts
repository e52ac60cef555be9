// Wakes the sandbox of a key of `getOrCreate`, whatever its project says about wake-on-use: the
// caller asked for an awake sandbox.
import { SANDBOX_STATES } from '@berth/contract/sandboxes/state.ts';
import type { Actor } from '../../rules/access/access.ts';
import { CodedError } from '../../rules/coded-error.ts';
import { NEVER_MADE } from '../../rules/sandboxes/destroy-holds.ts';
import { isDeathCode } from '../../rules/sandboxes/machine-death.ts';
import type { ChangeWatch } from '../../store/database/changes.ts';
import type { SandboxRow } from '../../store/database/schema.ts';
import { findSandbox } from '../../store/sandboxes/sandboxes.ts';
import type { ServiceContext } from '../context/context.ts';
import { withCapacity } from '../hosts/capacity-wait.ts';
import { recordActivity } from './activity-signal.ts';
import { isEnding } from './intent.ts';
import type { TransitionAnswer } from './wait.ts';
import { requestWake } from './wake.ts';

/**
 * Deleted, being deleted, or failed with nothing to wake from, as its host confirmed. After other
 * failures, such as a lost host, the VM may come back with its data.
 */
export function hasEnded(sandbox: SandboxRow): boolean {
  const { status, wakes_from: wakesFrom, status_reason_code: reason } = sandbox;
  if (status !== 'failed') return isEnding(sandbox);
  return wakesFrom === null && reason !== null && (isDeathCode(reason) || NEVER_MADE.has(reason));
}

/**
 * The sandbox, awake or on its way; undefined if it ended. Waits until `answer.signal` aborts.
 * Counts as a use, so that it stays awake for its idle time. After a failed wake it has the reason.
 * Throws `sandbox_state_conflict` with `Retry-After` if it falls asleep for longer than the wait,
 * and the errors of `requestWake`.
 */
export async function wakeSandboxOfKey(
  context: ServiceContext,
  actor: Actor,
  sandboxId: string,
  answer: TransitionAnswer,
): Promise<SandboxRow | undefined> {
  const watch = context.changes.watch(sandboxId);
  try {
    for (let asked = false; ;) {
      const now = await unlessMoving(context, watch, sandboxId, answer);
      if (now === undefined || isEnding(now)) return undefined;
      // Alive when the key was read: the caller gets the reason, as that of the create does.
      if (hasEnded(now)) return now;
      if (now.status === 'failed' && now.wakes_from === null) throw notBack(now);
      const { awake, settled } = SANDBOX_STATES[now.status];
      if (awake) {
        if (await recordActivity(context, now, 'create')) return now;
      } else if (now.status === 'sleeping') {
        throw new CodedError(
          'sandbox_state_conflict',
          `cannot wake the sandbox ${sandboxId} of this key: it is still falling asleep. Repeat the request`,
          { retryAfterSeconds: 1 },
        );
      } else if (!settled || asked || answer.signal.aborted) {
        return now;
      } else {
        const waking = await withCapacity(context, answer, () => wakeUnlessChanged(context, actor, now));
        if (waking !== undefined && answer.respondAsync) return waking;
        asked = waking !== undefined;
      }
    }
  } finally {
    watch.close();
  }
}

/** The current row; once no transition is in progress, unless the caller does not wait. */
async function unlessMoving(
  { db }: ServiceContext,
  watch: ChangeWatch,
  sandboxId: string,
  { respondAsync, signal }: TransitionAnswer,
): Promise<SandboxRow | undefined> {
  for (;;) {
    const now = await findSandbox(db, sandboxId);
    if (now === undefined || SANDBOX_STATES[now.status].settled || respondAsync || signal.aborted) return now;
    await watch.next(signal);
  }
}

/** undefined if another request changed the sandbox since `asleep` was read. */
async function wakeUnlessChanged(
  context: ServiceContext,
  actor: Actor,
  asleep: SandboxRow,
): Promise<SandboxRow | undefined> {
  try {
    return await requestWake(context, actor, asleep.id, { getOrCreate: true });
  } catch (error) {
    if (!(error instanceof CodedError) || error.code !== 'wake_not_possible') throw error;
    const now = await findSandbox(context.db, asleep.id);
    if (now !== undefined && now.status === asleep.status && now.epoch === asleep.epoch) throw error;
    return undefined;
  }
}

function notBack({ id, status_reason_message: reason }: SandboxRow): CodedError {
  const message =
    `cannot wake the sandbox ${id} of this key: ${reason ?? 'it failed'}. It may come back with its host; ` +
    'destroy it to get another one';
  return new CodedError('sandbox_state_conflict', message);
}
