// Expiry of ephemeral sandboxes: a renewal extends it by one time to live; an expired sandbox is
// destroyed, in any status except those of an end in progress. The row lock decides between them.
import type { Actor } from '../../rules/access/access.ts';
import { CodedError } from '../../rules/coded-error.ts';
import { renewedExpiry, requireRenewalWithinPlan, type Session } from '../../rules/sandboxes/renewal.ts';
import { insertActivity } from '../../store/activity/activity.ts';
import type { SandboxRow } from '../../store/database/schema.ts';
import type { ServiceContext } from '../context/context.ts';
import { planInForce } from '../billing/plans.ts';
import { requireLegal } from '../../rules/sandboxes/action.ts';
import { commitIntent, intendDestroy, isEnding, lockExisting, type IntentContext } from './intent.ts';
import { extendExpiry, hasExpired } from '../../store/sandboxes/expiry.ts';

/**
 * Extends the sandbox's expiry by its time to live. Throws `not_ephemeral`,
 * `sandbox_state_conflict` (also if it has expired but not ended yet), `no_active_plan` or
 * `session_cap_exhausted`, and then changes nothing.
 */
export async function renewSandbox(context: ServiceContext, actor: Actor, sandboxId: string): Promise<SandboxRow> {
  return await context.db.transaction().execute(async (trx) => {
    const before = await lockExisting(trx, sandboxId);
    const session = sessionOf(before);
    requireLegal('renew', before.status);
    const sandbox = await extendExpiry(trx, sandboxId, session.ttlSeconds);
    if (sandbox === undefined) {
      throw new CodedError(
        'sandbox_state_conflict',
        `the sandbox is ${before.status}, but expired at ${session.expiresAt.toISOString()} ` +
          'and is about to be destroyed; it can no longer be renewed',
      );
    }
    requireRenewalWithinPlan(await planInForce(context, trx, sandbox.org_id), session);
    await insertActivity(trx, {
      orgId: sandbox.org_id,
      projectId: sandbox.project_id,
      sandboxId,
      actor,
      kind: 'sandbox_renewed',
      details: { from: session.expiresAt, to: renewedExpiry(session), ttlSeconds: session.ttlSeconds },
    });
    return sandbox;
  });
}

function sessionOf(sandbox: SandboxRow): Session {
  const { mode, created_at: createdAt, expires_at: expiresAt, ttl_seconds: ttlSeconds } = sandbox;
  if (mode === 'ephemeral' && expiresAt !== null && ttlSeconds !== null) return { createdAt, expiresAt, ttlSeconds };
  throw new CodedError('not_ephemeral', 'this sandbox is persistent: it has no expiry to renew');
}

/**
 * Starts to delete the sandbox if it has expired; false if it was renewed or is already ending. Its
 * machine time ends at its expiry.
 */
export async function expireSandbox(context: IntentContext, sandboxId: string): Promise<boolean> {
  let ended = false;
  await commitIntent(context, sandboxId, async (trx, before) => {
    if (isEnding(before) || !(await hasExpired(trx, before.id))) return { sandbox: before, enqueued: false };
    ended = true;
    return await intendDestroy(context, trx, before, {
      actor: { kind: 'system', id: null, userId: null },
      kind: 'sandbox_expired',
      details: { expiredAt: before.expires_at, ttlSeconds: before.ttl_seconds },
    });
  });
  return ended;
}
