// Rolls up closed intervals into sums. SQL only; sums.ts reads the sums, workers/usage/rollup.ts
// drives this.
//
// Days of an org are cut at UTC midnights and at the org's cuts; periods at its cuts alone. Every
// closed interval is either in the spans of both levels that contain it, or unrolled and in no sum.
// All functions here need the org lock.
import { sql, type RawBuilder } from 'kysely';
import type { Database, DatabaseTransaction } from '../database/schema.ts';

/** The next org after this one, by id, with unrolled intervals; undefined for none. */
export async function nextUnrolledOrg(db: Database, after: string): Promise<string | undefined> {
  const row = await db
    .selectFrom('usage_unrolled')
    .select('org_id')
    .where('org_id', '>', after)
    .orderBy('org_id')
    .limit(1)
    .executeTakeFirst();
  return row?.org_id;
}

/** Orgs with sums whose subscription start or period anchor is not among their cuts. */
export async function listUncutOrgs(db: Database, most: number): Promise<string[]> {
  const { rows } = await sql<{ org_id: string }>`
    select org_id from subscription
    where exists (select from usage_span where usage_span.org_id = subscription.org_id)
      and exists (
        select from (values (started_at), (period_anchor)) wanted (at)
        where not exists (
          select from usage_cut
          where usage_cut.org_id = subscription.org_id and usage_cut.at = date_trunc('milliseconds', wanted.at)))
    limit ${most}`.execute(db);
  return rows.map((row) => row.org_id);
}

/** Locks the org's sums until the transaction ends; false if another transaction holds them. */
export async function lockUsageSums(trx: DatabaseTransaction, orgId: string): Promise<boolean> {
  const { rows } = await sql<{ locked: boolean }>`
    select pg_try_advisory_xact_lock(hashtextextended(${`berth:usage-sums:${orgId}`}, 0)) as locked`.execute(trx);
  return rows[0]?.locked === true;
}

/** Cuts the org's days and periods at the instant, and sums both sides anew. Idempotent. */
export async function cutUsageAt(trx: DatabaseTransaction, orgId: string, at: Date): Promise<void> {
  const { numInsertedOrUpdatedRows: inserted = 0n } = await trx
    .insertInto('usage_cut')
    .values({ org_id: orgId, at })
    .onConflict((conflict) => conflict.doNothing())
    .executeTakeFirstOrThrow();
  if (inserted === 0n) return;
  const { rows } = await sql<{ starts_at: Date; ends_at: Date }>`
    with span as (
      delete from usage_span where org_id = ${orgId} and level = 'day' and starts_at < ${at} and ends_at > ${at}
      returning starts_at, ends_at
    ), total as (
      delete from usage_total using span
      where usage_total.org_id = ${orgId} and level = 'day' and usage_total.starts_at = span.starts_at
    )
    select starts_at, ends_at from span`.execute(trx);
  for (const day of rows) {
    await sql`
      with piece as materialized (
        ${pieces(sql`usage_interval u`)}
        where u.org_id = ${orgId} and not upper_inf(during) and during && tstzrange(${day.starts_at}, ${day.ends_at})
          and not exists (select from usage_unrolled q where q.org_id = ${orgId} and q.interval_id = u.id)
      ), span (level, starts_at, ends_at) as (
        values ('day', ${day.starts_at}::timestamptz, ${at}::timestamptz), ('day', ${at}, ${day.ends_at})
      ), ${addedParts(orgId)}
      select`.execute(trx);
  }
  await sumPeriodsAround(trx, orgId, at);
}

/** Sums the two periods that meet at the cut from their days. */
async function sumPeriodsAround(trx: DatabaseTransaction, orgId: string, at: Date): Promise<void> {
  const { rows } = await sql<{ before: Date | null; after: Date | null }>`
    select max(at) filter (where at < ${at}) as before, min(at) filter (where at > ${at}) as after
    from usage_cut where org_id = ${orgId}`.execute(trx);
  const { before, after } = rows[0] ?? { before: null, after: null };
  for (const startsAt of [before, at]) {
    if (startsAt === null) continue;
    for (const table of ['usage_span', 'usage_total'] as const) {
      await trx
        .deleteFrom(table)
        .where('org_id', '=', orgId)
        .where('level', '=', 'period')
        .where('starts_at', '=', startsAt)
        .execute();
    }
  }
  for (const [startsAt, endsAt] of [
    [before, at],
    [at, after],
  ] as const) {
    if (startsAt === null || endsAt === null) continue;
    await sql`
      insert into usage_span (org_id, level, starts_at, ends_at, first_at, last_at)
      select ${orgId}, 'period', ${startsAt}::timestamptz, ${endsAt}::timestamptz, min(first_at), max(last_at)
      from usage_span
      where org_id = ${orgId} and level = 'day' and starts_at >= ${startsAt} and starts_at < ${endsAt}
      having count(*) > 0`.execute(trx);
    await sql`
      insert into usage_total (org_id, level, starts_at, project_id, end_user_id, vcpu, memory_gb, disk_gb, ms)
      select ${orgId}, 'period', ${startsAt}::timestamptz, project_id, end_user_id, vcpu, memory_gb, disk_gb, sum(ms)
      from usage_total
      where org_id = ${orgId} and level = 'day' and starts_at >= ${startsAt} and starts_at < ${endsAt}
      group by project_id, end_user_id, vcpu, memory_gb, disk_gb`.execute(trx);
  }
}

/**
 * Adds at most `most` unrolled intervals to the org's sums, first closed first. Returns the count.
 */
export async function rollUpUsage(trx: DatabaseTransaction, orgId: string, most: number): Promise<number> {
  const { rows } = await sql<{ count: number }>`
    with batch as materialized (
      delete from usage_unrolled
      where ctid = any (array(select ctid from usage_unrolled where org_id = ${orgId} order by seq limit ${most}))
      returning interval_id
    ), piece as materialized (
      ${pieces(sql`batch join usage_interval u on u.id = batch.interval_id`)}
    ), bounds as (
      select date_trunc('day', min(begins), 'UTC') as lo, max(ends) as hi from piece
    ), edge as (
      select generate_series(lo, hi + interval '24 hours', interval '24 hours') as at from bounds
      union select at from usage_cut, bounds where org_id = ${orgId} and at > lo and at < hi + interval '24 hours'
    ), span as materialized (
      select 'day' as level, at as starts_at, lead(at) over (order by at) as ends_at from edge
      union all select 'period', at, lead(at) over (order by at) from usage_cut where org_id = ${orgId}
    ), ${addedParts(orgId)}
    select count(*)::integer as count from batch`.execute(trx);
  return rows[0]?.count ?? 0;
}

/** Closed intervals with their bounds truncated to milliseconds. */
function pieces(from: RawBuilder<unknown>): RawBuilder<unknown> {
  return sql`
    select project_id, end_user_id, vcpu, memory_gb, disk_gb,
      date_trunc('milliseconds', lower(during)) as begins, date_trunc('milliseconds', upper(during)) as ends
    from ${from}`;
}

/** CTEs that add `piece` to the sums of each `span`. A span without an end is ignored. */
function addedParts(orgId: string): RawBuilder<unknown> {
  return sql`
    part as materialized (
      select level, starts_at, ends_at, project_id, end_user_id, vcpu, memory_gb, disk_gb,
        greatest(begins, starts_at) as begins, least(ends, ends_at) as ends
      from piece join span on begins < ends_at and ends > starts_at and begins < ends
    ), added_span as (
      insert into usage_span (org_id, level, starts_at, ends_at, first_at, last_at)
      select ${orgId}, level, starts_at, ends_at, min(begins), max(ends) from part group by level, starts_at, ends_at
      on conflict (org_id, level, starts_at) do update set
        first_at = least(usage_span.first_at, excluded.first_at),
        last_at = greatest(usage_span.last_at, excluded.last_at)
    ), added_total as (
      insert into usage_total (org_id, level, starts_at, project_id, end_user_id, vcpu, memory_gb, disk_gb, ms)
      select ${orgId}, level, starts_at, project_id, end_user_id, vcpu, memory_gb, disk_gb,
        sum((extract(epoch from ends - begins) * 1000)::bigint)
      from part group by level, starts_at, project_id, end_user_id, vcpu, memory_gb, disk_gb
      on conflict on constraint usage_total_once do update set ms = usage_total.ms + excluded.ms
    )`;
}
