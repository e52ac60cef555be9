// Deletes old entries of the activity feed, by the plans of their orgs. SQL only; partitions.ts
// drops whole months.
import { sql } from 'kysely';
import type { Database } from '../database/schema.ts';

/**
 * Deletes at most `limit` entries older than `days` of the orgs with one of the plans, each org's
 * oldest first. Returns the number deleted.
 */
export async function deleteOldActivity(
  db: Database,
  { days, plans }: { days: number; plans: readonly string[] },
  limit: number,
): Promise<number> {
  const cut = sql`now() - ${days} * interval '1 day'`;
  return await db.transaction().execute(async (trx) => {
    // Reads each org in the order of the index. A sort would read all old entries for every batch.
    await sql`set local enable_sort = off`.execute(trx);
    const result = await sql`
      with old as materialized (
        select entry.* from subscription cross join lateral (
          select org_id, at, seq from activity where org_id = subscription.org_id and at < ${cut}
          order by at, seq limit ${limit}) entry
        where plan = any(${plans}) limit ${limit})
      delete from activity using old
      where activity.at < ${cut} and activity.org_id = old.org_id
        and activity.at = old.at and activity.seq = old.seq`.execute(trx);
    return Number(result.numAffectedRows ?? 0);
  });
}

/** Plans of all orgs, each once; null if an org has none. */
export async function plansInUse(db: Database): Promise<(string | null)[]> {
  const rows = await db
    .selectFrom('org')
    .leftJoin('subscription', 'subscription.org_id', 'org.id')
    .select('subscription.plan')
    .distinct()
    .execute();
  return rows.map(({ plan }) => plan);
}
