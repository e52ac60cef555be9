// Ends an expired ephemeral sandbox, in any status except those of an end in progress. The row lock
// decides between expiry and renewal.
import { SANDBOX_ACTION_RULES } from '@berth/contract/sandboxes/state.ts';
import { hasExpired } from '../../store/sandboxes/expiry.ts';
import { commitIntent, type IntentContext } from './intent.ts';
import { transitionSandbox } from './transition.ts';

/**
 * Starts to delete the sandbox if it has expired; false if it was renewed or is already ending. Its
 * machine time ends at its expiry.
 */
export async function expireSandbox(context: IntentContext, sandboxId: string): Promise<boolean> {
  let ended = false;
  await commitIntent(context, sandboxId, async (trx, before) => {
    if (SANDBOX_ACTION_RULES.destroy[before.status] !== 'do' || !(await hasExpired(trx, before.id)))
      return { sandbox: before, enqueued: false };

    const { outcome, sandbox } = await transitionSandbox(trx, {
      sandboxId: before.id,
      epoch: before.epoch,
      to: 'destroying',
      newEpoch: true,
      actor: { kind: 'system', id: null, userId: null },
      kind: 'sandbox_expired',
      details: { expiredAt: before.expires_at, ttlSeconds: before.ttl_seconds },
    });
    if (outcome !== 'changed') throw new Error(`the expiry of a sandbox that is ${before.status} was ${outcome}`);
    await context.lifecycle.enqueue(trx, 'destroy', { sandboxId: sandbox.id, epoch: sandbox.epoch });
    ended = true;
    return { sandbox, enqueued: true };
  });
  return ended;
}
