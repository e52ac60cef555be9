// Notes in the activity feed that a host refused attempts under a sandbox's egress policy.
import type { EgressDenied } from '@berth/protocol/egress.ts';
import { insertActivity } from '../../store/activity/activity.ts';
import { readClock } from '../../store/database/clock.ts';
import type { DatabaseTransaction } from '../../store/database/schema.ts';
import { writeEgressDenied } from '../../store/sandboxes/egress-denied.ts';
import { lockSandbox } from '../../store/sandboxes/sandboxes.ts';

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
