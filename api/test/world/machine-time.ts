// Writes used machine time into the ledger, in the current billing period or before.
import { sql } from 'kysely';
import { newId } from '../../src/store/database/ids.ts';
import type { Database } from '../../src/store/database/schema.ts';
import { insertSubscription } from '../../src/store/billing/subscriptions.ts';

export const HOUR_MS = 3_600_000;
const DAY_MS = 86_400_000;

interface OrgAndProject {
  orgId: string;
  projectId: string;
}

/**
 * Sets the org's subscription; the current period began five days ago, the subscription long
 * before.
 */
export async function setSubscription(
  db: Database,
  orgId: string,
  changed: { plan?: string; machine_hour_limit?: number | null; overage_enabled?: boolean } = {},
): Promise<{ periodStartsAt: Date }> {
  const periodStartsAt = new Date(Date.now() - 5 * DAY_MS);
  if (
    (await db.selectFrom('subscription').select('org_id').where('org_id', '=', orgId).executeTakeFirst()) === undefined
  )
    await insertSubscription(db, { orgId, plan: changed.plan ?? 'self-hosted' });

  await db
    .updateTable('subscription')
    .set({ started_at: new Date(periodStartsAt.getTime() - 100 * DAY_MS), period_anchor: periodStartsAt, ...changed })
    .where('org_id', '=', orgId)
    .execute();
  return { periodStartsAt };
}

/** Adds an interval of a deleted sandbox with the given length and end, by default a day ago. */
export async function addUsed(
  db: Database,
  { orgId, projectId }: OrgAndProject,
  ms: number,
  endedAt = new Date(Date.now() - DAY_MS),
): Promise<void> {
  await insert(db, { orgId, projectId }, newId('sandbox'), new Date(endedAt.getTime() - ms), endedAt);
}

/** Adds a running interval of the sandbox. */
export async function addRunning(db: Database, of: OrgAndProject, sandboxId: string, since: Date): Promise<void> {
  await insert(db, of, sandboxId, since, null);
}

async function insert(
  db: Database,
  { orgId, projectId }: OrgAndProject,
  sandboxId: string,
  from: Date,
  to: Date | null,
): Promise<void> {
  await sql`
    insert into usage_interval (id, sandbox_id, org_id, project_id, vcpu, memory_gb, disk_gb, during)
    values (${newId('usageInterval')}, ${sandboxId}, ${orgId}, ${projectId}, 1, 1, 10,
      tstzrange(${from}::timestamptz, ${to}::timestamptz))`.execute(db);
}
