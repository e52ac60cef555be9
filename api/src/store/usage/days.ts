// Machine time of whole days in UTC, in whole milliseconds. SQL only; rollup.ts makes the sums.
// Day sums never cross a midnight, so those of a day add up to it. One statement sees each interval
// either in the sums or beside them.
import { sql } from 'kysely';
import type { Database } from '../database/schema.ts';
import { millisecondsWithin } from './sums.ts';

interface DaysAsked {
  orgId: string;
  /** May be a deleted project. */
  projectId?: string | undefined;
  endUserId?: string | undefined;
  /** Number of days up to that of `at`. */
  days: number;
  /** Now by the database clock (store/database/clock.ts). Open intervals count up to this. */
  at: Date;
}

/** Oldest first; days without use have 0. */
export async function usedByDay(
  db: Database,
  { orgId, projectId, endUserId, days, at }: DaysAsked,
): Promise<{ date: string; ms: number }[]> {
  const ofProject = projectId === undefined ? sql`` : sql`and project_id = ${projectId}`;
  const ofEndUser = endUserId === undefined ? sql`` : sql`and end_user_id = ${endUserId}`;
  const asked = sql`${ofProject} ${ofEndUser}`;
  const within = millisecondsWithin(sql`day`, sql`least(day + interval '24 hours', ${at}::timestamptz)`);
  const { rows } = await sql<{ date: string; ms: string }>`
    with day as materialized (
      select date_trunc('day', ${at}::timestamptz, 'UTC') - number * interval '24 hours' as day
      from generate_series(0, ${days}::integer - 1) number
    ), part as (
      select date_trunc('day', starts_at, 'UTC') as day, ms from usage_total
      where org_id = ${orgId} and level = 'day' and starts_at >= (select min(day) from day) ${asked}
      union all
      select day, ${within}
      from day, usage_unrolled q join usage_interval u on u.id = q.interval_id
      where q.org_id = ${orgId} and during && tstzrange(day, day + interval '24 hours') ${asked}
      union all
      select day, ${within}
      from day, usage_interval
      where org_id = ${orgId} and upper_inf(during) and lower(during) < day + interval '24 hours' ${asked}
    )
    select to_char(day at time zone 'UTC', 'YYYY-MM-DD') as date, coalesce(sum(ms), 0) as ms
    from day left join part using (day)
    group by day order by day`.execute(db);
  return rows.map(({ date, ms }) => ({ date, ms: Number(ms) }));
}
