// How much machine time was used: sums over the ledger in whole milliseconds. SQL only.
//
// Every instant of the ledger counts as the millisecond it lies in, so parts of an interval add up to the whole, wherever it is cut.
import { sql } from 'kysely';
import type { Database } from './schema.ts';

export interface UsageWindow {
  orgId: string;
  /** Also of a project that was deleted. */
  projectId?: string | undefined;
  endUserId?: string | undefined;
  from: Date;
  to: Date;
  /** Now, by the database's clock (clock.ts). What runs is counted until then. */
  at: Date;
}

/** One end user's time on machines of one size. */
export interface EndUserUsage {
  endUserId: string;
  vcpu: number;
  memoryGb: number;
  diskGb: number;
  ms: number;
}

/** Milliseconds of awake machine time in [from, to), as known at `at`; machines that run are counted until then. */
export async function usedMs(db: Database, window: UsageWindow): Promise<number> {
  const { orgId, projectId, endUserId } = window;
  const { rows } = await sql<{ ms: string }>`
    select coalesce(sum(ms), 0) as ms from (${rawParts(window)}) part
    where org_id = ${orgId}
      and (${projectId ?? null}::text is null or project_id = ${projectId ?? null})
      and (${endUserId ?? null}::text is null or end_user_id = ${endUserId ?? null})`.execute(db);
  return Number(rows[0]?.ms);
}

/** The same by end user and machine size, in no order; what has no end user is left out. */
export async function usageByEndUser(db: Database, window: Omit<UsageWindow, 'endUserId'>): Promise<EndUserUsage[]> {
  const { orgId, projectId } = window;
  const { rows } = await sql<{ end_user_id: string; vcpu: number; memory_gb: number; disk_gb: number; ms: string }>`
    select end_user_id, vcpu, memory_gb, disk_gb, sum(ms) as ms from (${rawParts(window)}) part
    where org_id = ${orgId} and end_user_id is not null and (${projectId ?? null}::text is null or project_id = ${projectId ?? null})
    group by end_user_id, vcpu, memory_gb, disk_gb`.execute(db);
  return rows.map((row) => ({
    endUserId: row.end_user_id,
    vcpu: row.vcpu,
    memoryGb: row.memory_gb,
    diskGb: row.disk_gb,
    ms: Number(row.ms),
  }));
}

/** The part of each interval in the window. */
function rawParts({ orgId, from, to, at }: UsageWindow) {
  return sql`
    select org_id, project_id, end_user_id, vcpu, memory_gb, disk_gb,
      (extract(epoch from
        least(date_trunc('milliseconds', upper(during)), seen.hi) - greatest(date_trunc('milliseconds', lower(during)), seen.lo)
      ) * 1000)::bigint as ms
    from usage_interval, (select ${from}::timestamptz as lo, least(${to}::timestamptz, ${at}::timestamptz) as hi) seen
    where org_id = ${orgId} and seen.lo < seen.hi and during && tstzrange(seen.lo, greatest(seen.lo, seen.hi))`;
}
