// Fills a ledger of VM time of any length, inside the database. Two ledgers of different lengths
// have the same sandboxes, end users, projects, sizes, days and total time: the shorter has fewer
// and longer intervals.
import { sql } from 'kysely';
import type { Database } from '@berth/api/store/database/schema.ts';

export const SANDBOXES = 1_000;
export const END_USERS = 40;
export const PROJECTS = 5;
export const DAYS = 29;
/** Open intervals at the time of the request. */
export const RUNNING = 100;

/**
 * Speeds up filling the ledger's tables: unlogged, without the overlap constraint, which these
 * ledgers never violate, and without the trigger, whose work {@link fillLedger} does. No measured
 * code reads any of these.
 */
export async function prepareLedger(db: Database): Promise<void> {
  for (const statement of [
    sql`alter table usage_interval set unlogged`,
    sql`alter table usage_unrolled set unlogged`,
    sql`alter table usage_interval drop constraint usage_interval_never_twice`,
    sql`alter table usage_interval disable trigger usage_interval_closed`,
    sql`drop index usage_interval_org`,
  ])
    await statement.execute(db);
}

/**
 * Gives an org `count` closed intervals over the last days, all still to be summed, and some open
 * ones. Its billing period began equally long ago, at midday.
 */
export async function fillLedger(db: Database, org: { orgId: string }, count: number): Promise<void> {
  const begins = sql`(date_trunc('day', now(), 'UTC') - ${`${DAYS} days`}::interval + interval '12 hours')`;
  await sql`
    update subscription set started_at = ${begins}, period_anchor = ${begins}
    where org_id = ${org.orgId}`.execute(db);
  const rounds = count / SANDBOXES;
  if (!Number.isInteger(rounds)) throw new Error(`${count} is no multiple of ${SANDBOXES}`);
  // Each sandbox is awake for two thirds of each round.
  await sql`
    insert into usage_interval (id, sandbox_id, org_id, project_id, end_user_id, vcpu, memory_gb, disk_gb, during)
    select substr(${org.orgId}, 1, 12) || n, substr(${org.orgId}, 1, 12) || s, ${org.orgId},
      'prj_' || s % ${PROJECTS}::integer,
      nullif('user ' || s % ${END_USERS + 1}::integer, 'user 0'), 1 << (s % 3), 2 << (s % 3), 10 << (s % 3),
      tstzrange(span.at, span.at + round_length * 2 / 3)
    from (
        select interval '1 second' * (extract(epoch from now() - ${begins}) / ${rounds}::float8) as round_length
      ) length,
      generate_series(0, ${count - 1}::integer) n,
      lateral (select n % ${SANDBOXES}::integer as s) sandbox,
      lateral (
        select ${begins} + round_length * (n / ${SANDBOXES}::integer)
          + round_length / 4 * (s / ${SANDBOXES}::float8) as at
      ) span`.execute(db);
  await sql`
    insert into usage_unrolled (org_id, interval_id)
    select org_id, id from usage_interval where org_id = ${org.orgId}`.execute(db);
  await sql`
    insert into usage_interval (id, sandbox_id, org_id, project_id, end_user_id, vcpu, memory_gb, disk_gb, during)
    select substr(${org.orgId}, 1, 12) || 'r' || n, substr(${org.orgId}, 1, 12) || 'r' || n, ${org.orgId},
      'prj_0', 'user 1', 1, 2, 10,
      tstzrange(now() - n * interval '1 minute', null)
    from generate_series(1, ${RUNNING}::integer) n`.execute(db);
}

/** Restores the index that reads may use, and updates the planner's statistics. */
export async function finishLedger(db: Database): Promise<void> {
  await sql`set maintenance_work_mem = '1GB'`.execute(db);
  await sql`create index usage_interval_org on usage_interval using gist (org_id, during)`.execute(db);
  await sql`vacuum (analyze) usage_interval`.execute(db);
  await sql`vacuum (analyze) usage_unrolled`.execute(db);
}

/** Stands in for autovacuum, which runs some time after many intervals were summed. */
export async function tidyLedger(db: Database): Promise<void> {
  await sql`vacuum (analyze) usage_unrolled, usage_total, usage_span, usage_cut`.execute(db);
}

/** Milliseconds of VM time of the org in a window, summed over single intervals. */
export async function sumOfIntervals(
  db: Database,
  orgId: string,
  { from, at }: { from: Date; at: Date },
): Promise<number> {
  const { rows } = await sql<{ ms: string }>`
    select sum(greatest(0, (extract(epoch from
      date_trunc('milliseconds', coalesce(upper(during), ${at}::timestamptz))
      - greatest(date_trunc('milliseconds', lower(during)), ${from}::timestamptz)
    ) * 1000)::bigint)) as ms
    from usage_interval where org_id = ${orgId}`.execute(db);
  return Number(rows[0]?.ms);
}
