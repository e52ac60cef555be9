// Renews an ephemeral sandbox: extends its expiry by one time to live. The row lock decides between
// renewal and expiry.
import type { Actor } from '../../rules/access/access.ts';
import { CodedError } from '../../rules/coded-error.ts';
import { renewedExpiry, requireRenewalWithinPlan, type Session } from '../../rules/sandboxes/renewal.ts';
import { insertActivity } from '../../store/activity/activity.ts';
import { extendExpiry } from '../../store/sandboxes/expiry.ts';
import { lockSandbox } from '../../store/sandboxes/sandboxes.ts';
import type { SandboxRow } from '../../store/database/schema.ts';
import type { ServiceContext } from '../context/context.ts';
import { planInForce } from '../billing/plans.ts';
import { requireLegal } from '../../rules/sandboxes/action.ts';

/**
 * Extends the sandbox's expiry by its time to live. Throws `not_ephemeral`,
 * `sandbox_state_conflict` (also if it has expired but not ended yet), `no_active_plan` or
 * `session_cap_exhausted`, and then changes nothing.
 */
export async function renewSandbox(context: ServiceContext, actor: Actor, sandboxId: string): Promise<SandboxRow> {
  return await context.db.transaction().execute(async (trx) => {
    const before = await lockSandbox(trx, sandboxId);
    if (before === undefined) throw new CodedError('sandbox_not_found', 'there is no sandbox with this id');
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
