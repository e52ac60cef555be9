// Replaces the egress policy of a sandbox, and notes refused attempts. The row holds the policy;
// the host of an awake sandbox gets it after the commit, and again from the reconciler until it
// confirms.
import { TRANSITION_WAIT_MS } from '@berth/contract/route/limits.ts';
import type { EgressBody } from '@berth/contract/sandboxes/egress-policy.ts';
import { SANDBOX_STATES } from '@berth/contract/sandboxes/state.ts';
import type { EgressDenied } from '@berth/protocol/egress.ts';
import { HostError } from '../../hosts/error.ts';
import type { Actor } from '../../rules/access/access.ts';
import { canonicalJson } from '../../rules/canonical-json.ts';
import { insertActivity } from '../../store/activity/activity.ts';
import { readClock } from '../../store/database/clock.ts';
import type { DatabaseTransaction, SandboxRow } from '../../store/database/schema.ts';
import { writeEgressDenied } from '../../store/sandboxes/egress-denied.ts';
import { egressOf, findSandbox, lockSandbox, writeSandboxEgress } from '../../store/sandboxes/sandboxes.ts';
import type { ServiceContext } from '../context/context.ts';
import { lockChangeable } from './intent.ts';

/** Throws `sandbox_state_conflict` for a sandbox that is deleted or being deleted. */
export async function setEgress(
  context: ServiceContext,
  actor: Actor,
  sandboxId: string,
  egress: EgressBody,
): Promise<{ sandbox: SandboxRow; enforced: boolean }> {
  const sandbox = await context.db.transaction().execute(async (trx) => {
    const before = await lockChangeable(trx, sandboxId, 'it has no network any more');
    if (canonicalJson(before.egress) === canonicalJson(egress)) return before;
    const after = await writeSandboxEgress(trx, before, egress);
    await insertActivity(trx, {
      orgId: after.org_id,
      projectId: after.project_id,
      sandboxId,
      actor,
      kind: 'sandbox_egress_changed',
      details: { from: summaryOf(before.egress), to: summaryOf(egress) },
    });
    return after;
  });
  return { sandbox, enforced: await enforce(context, sandbox) };
}

/** True once the host enforces the policy of the row, or a newer one. */
async function enforce(context: ServiceContext, { id, epoch, status }: SandboxRow): Promise<boolean> {
  if (!SANDBOX_STATES[status].awake) return false;
  const sandbox = await findSandbox(context.db, id);
  if (sandbox === undefined || sandbox.host_url === null || sandbox.epoch !== epoch) return false;
  try {
    await context.hosts
      .at(sandbox.host_url)
      .setEgress(id, { epoch, egress: egressOf(sandbox) }, { deadlineMs: TRANSITION_WAIT_MS });
    return true;
  } catch (error) {
    // The reconciler repeats the call.
    if (error instanceof HostError) return false;
    throw error;
  }
}

/** Without the entries: a feed of thousands of changes stays small. */
function summaryOf({ mode, names, ranges, ports }: EgressBody): Record<string, unknown> {
  return mode === 'allow' ? { mode, names: names.length, ranges: ranges.length, ports: ports.length } : { mode };
}

/** Shortest time between two entries of a sandbox: its guest chooses how often it is refused. */
export const EGRESS_DENIED_EVERY_MS = 60_000;

/**
 * Adds an entry with the attempts since the last one. Returns the milliseconds until it may; null
 * if all attempts are noted.
 */
export async function noteEgressDenied(
  trx: DatabaseTransaction,
  { sandboxId, epoch }: { sandboxId: string; epoch: number },
  { sinceUnixMs, count, destinations }: EgressDenied,
): Promise<number | null> {
  const sandbox = await lockSandbox(trx, sandboxId);
  if (sandbox?.epoch !== epoch) return null;
  const { egress_denied: noted, egress_denied_at: notedAt } = sandbox;
  const added = noted?.sinceUnixMs === sinceUnixMs ? count - noted.count : count;
  if (added <= 0) return null;
  const now = await readClock(trx);
  const dueMs = notedAt === null ? 0 : notedAt.getTime() + EGRESS_DENIED_EVERY_MS - now.getTime();
  if (dueMs > 0) return dueMs;
  await writeEgressDenied(trx, sandboxId, { sinceUnixMs, count }, now);
  await insertActivity(trx, {
    orgId: sandbox.org_id,
    projectId: sandbox.project_id,
    sandboxId,
    actor: { kind: 'system', id: null, userId: null },
    kind: 'sandbox_egress_denied',
    details: { count: added, destinations },
  });
  return null;
}
