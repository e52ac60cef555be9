// Machine time used in a window, in whole milliseconds. SQL only; rollup.ts makes the sums read
// here.
//
// Every instant counts as the millisecond that contains it. Parts of an interval therefore add up
// to the whole wherever it is cut, and the sums agree with the intervals to the millisecond. Each
// query is one statement, so it sees an interval either in the sums or beside them.
import { sql, type RawBuilder } from 'kysely';
import type { Database } from '../database/schema.ts';

interface UsageWindow {
  orgId: string;
  /** May be a deleted project. */
  projectId?: string | undefined;
  endUserId?: string | undefined;
  from: Date;
  to: Date;
  /** Now by the database clock (store/database/clock.ts). Open intervals count up to this. */
  at: Date;
}

/** An end user's time on VMs of a size. */
export interface EndUserUsage {
  endUserId: string;
  vcpu: number;
  memoryGb: number;
  diskGb: number;
  ms: number;
}

/**
 * Milliseconds of awake VM time in [from, to), as known at `at`; open intervals count up to `at`.
 */
export async function usedMs(db: Database, window: UsageWindow): Promise<number> {
  const { rows } = await sql<{ ms: string }>`${partsIn(window)} select coalesce(sum(ms), 0) as ms from part`.execute(
    db,
  );
  return Number(rows[0]?.ms);
}

/**
 * Usage of an org, of one of its projects, and of an end user in that scope. Each is as in {@link
 * usedMs}; all are of the same snapshot.
 */
interface UsedParts {
  orgMs: number;
  /** Use of the project; without a project, of the org. */
  scopeMs: number;
  /** Use of the end user within that scope; without an end user, of the scope. */
  askedMs: number;
}

export async function usedParts(db: Database, { projectId, endUserId, ...window }: UsageWindow): Promise<UsedParts> {
  const inScope = projectId === undefined ? sql`true` : sql`project_id = ${projectId}`;
  const isAsked = endUserId === undefined ? inScope : sql`${inScope} and end_user_id = ${endUserId}`;
  const { rows } = await sql<{ org: string; scope: string; asked: string }>`
    ${partsIn(window)}
    select coalesce(sum(ms), 0) as org,
      coalesce(sum(ms) filter (where ${inScope}), 0) as scope, coalesce(sum(ms) filter (where ${isAsked}), 0) as asked
    from part`.execute(db);
  const [{ org, scope, asked } = { org: 0, scope: 0, asked: 0 }] = rows;
  return { orgMs: Number(org), scopeMs: Number(scope), askedMs: Number(asked) };
}

/** Use of an org, and of each of the projects by id, each as in {@link usedMs}, in one snapshot. */
export async function usedByProjects(
  db: Database,
  window: Omit<UsageWindow, 'projectId' | 'endUserId'>,
  projectIds: readonly string[],
): Promise<{ orgMs: number; projectMs: ReadonlyMap<string, number> }> {
  const { rows } = await sql<{ project_id: string | null; ms: string }>`
    ${partsIn(window)}
    select case when project_id = any(${projectIds}::text[]) then project_id end as project_id,
      sum(ms) as ms
    from part group by 1`.execute(db);
  const projectMs = new Map(projectIds.map((id) => [id, 0]));
  for (const { project_id: id, ms } of rows) if (id !== null) projectMs.set(id, Number(ms));
  return { orgMs: rows.reduce((sum, { ms }) => sum + Number(ms), 0), projectMs };
}

/** Use by end user and VM size, unordered. Sandboxes without an end user are left out. */
export async function usageByEndUser(db: Database, window: Omit<UsageWindow, 'endUserId'>): Promise<EndUserUsage[]> {
  const { rows } = await sql<{ end_user_id: string; vcpu: number; memory_gb: number; disk_gb: number; ms: string }>`
    ${partsIn(window)}
    select end_user_id, vcpu, memory_gb, disk_gb, sum(ms) as ms from part
    where end_user_id is not null
    group by end_user_id, vcpu, memory_gb, disk_gb
    having sum(ms) > 0`.execute(db);
  return rows.map((row) => ({
    endUserId: row.end_user_id,
    vcpu: row.vcpu,
    memoryGb: row.memory_gb,
    diskGb: row.disk_gb,
    ms: Number(row.ms),
  }));
}

/**
 * `part`: milliseconds in the window by user and size. Reads period sums whose content lies
 * entirely in the window, then day sums outside those periods, and intervals for the remaining
 * days. Adds open and unrolled intervals.
 */
function partsIn({ orgId, projectId, endUserId, from, to, at }: UsageWindow): RawBuilder<unknown> {
  const ofProject = projectId === undefined ? sql`` : sql`and project_id = ${projectId}`;
  const ofEndUser = endUserId === undefined ? sql`` : sql`and end_user_id = ${endUserId}`;
  const asked = sql`${ofProject} ${ofEndUser}`;
  const whose = sql`project_id, end_user_id, vcpu, memory_gb, disk_gb`;
  return sql`
    with seen as (
      select ${from}::timestamptz as lo,
        greatest(${from}::timestamptz, least(${to}::timestamptz, ${at}::timestamptz)) as hi
    ), span as materialized (
      select level, starts_at, ends_at, first_at >= lo and last_at <= hi as whole from usage_span, seen
      where org_id = ${orgId} and starts_at < hi and last_at > lo and first_at < hi
    ), taken as materialized (
      select * from span where whole and level = 'period'
    ), day as materialized (
      select * from span
      where level = 'day'
        and not exists (select from taken where span.starts_at >= taken.starts_at and span.ends_at <= taken.ends_at)
    ), part as (
      select ${whose}, ms
      from (select level, starts_at from taken union all select level, starts_at from day where whole) summed
      join usage_total using (level, starts_at)
      where org_id = ${orgId} ${asked}
      union all
      select ${whose}, ${millisecondsWithin(sql`greatest(lo, starts_at)`, sql`least(hi, ends_at)`)}
      from seen, day join usage_interval u on u.org_id = ${orgId} and during && tstzrange(starts_at, ends_at)
      where not whole and during && tstzrange(lo, hi) and not upper_inf(during) ${asked}
        and not exists (select from usage_unrolled q where q.org_id = ${orgId} and q.interval_id = u.id)
      union all
      select ${whose}, ${millisecondsWithin(sql`lo`, sql`hi`)}
      from seen, usage_unrolled q join usage_interval u on u.id = q.interval_id
      where q.org_id = ${orgId} and during && tstzrange(lo, hi) ${asked}
      union all
      select ${whose}, ${millisecondsWithin(sql`lo`, sql`hi`)}
      from seen, usage_interval
      where org_id = ${orgId} and upper_inf(during) and lower(during) < hi ${asked}
    )`;
}

/** Length of an interval within bounds, in whole milliseconds; never negative. */
export function millisecondsWithin(from: RawBuilder<unknown>, to: RawBuilder<unknown>): RawBuilder<unknown> {
  return sql`
    (extract(epoch from greatest(interval '0',
      least(date_trunc('milliseconds', upper(during)), ${to})
      - greatest(date_trunc('milliseconds', lower(during)), ${from})
    )) * 1000)::bigint as ms`;
}
