// Partitions of the activity feed, one a month. They cover all of time, so no insert lacks one: the
// first has no lower bound, the last no upper one. SQL only; 0020_activity_partitions.ts made the
// first two.
// A change locks the whole feed for milliseconds. It gives up early if it must wait, for instance
// for a backup: every insert would queue behind it. The next run tries again.
import { sql } from 'kysely';
import type { Database, DatabaseTransaction } from '../database/schema.ts';

/** Time that the last partition lies in the future. */
const AHEAD = sql.lit('14 days');
/** Less than Postgres' `deadlock_timeout`: this transaction yields, never the caller's. */
const LOCK_TIMEOUT = sql.lit('500ms');

const FIRST = 'activity_first';

interface Partition {
  name: string;
  /** null: from the beginning. */
  from: Date | null;
  /** Exclusive. null: to the end. */
  to: Date | null;
}

/** All partitions, oldest first. */
export async function listActivityPartitions(db: Database): Promise<Partition[]> {
  const { rows } = await sql<Partition>`
    select name, substring(bounds from $$FROM \\('(.+?)'\\)$$)::timestamptz as "from",
      substring(bounds from $$TO \\('(.+?)'\\)$$)::timestamptz as "to"
    from (select relname as name, pg_get_expr(relpartbound, pg_class.oid) as bounds
      from pg_inherits join pg_class on pg_class.oid = inhrelid where inhparent = 'activity'::regclass) found
    order by "from" nulls first`.execute(db);
  return rows;
}

/**
 * Bounds the last partition at the end of its month and adds the next one, unless the last is far
 * enough in the future. Entries that already lie beyond the month, written while this did not run
 * or by a wrong clock, stay in that partition. Returns the name of the new partition, if any.
 */
export async function addActivityPartition(db: Database): Promise<string | null> {
  const isDue = async (in_: Database): Promise<{ last: Partition; due: boolean }> => {
    const last = (await listActivityPartitions(in_)).at(-1);
    if (last?.from == null) throw new Error('the activity feed has no last partition');
    const { rows } = await sql<{ due: boolean }>`select ${last.from} < now() + ${AHEAD}::interval as due`.execute(in_);
    return { last, due: rows[0]?.due === true };
  };
  if (!(await isDue(db)).due) return null;
  return await inFeedLock(db, async (trx) => {
    // Another replica may have been first.
    const { last, due } = await isDue(trx);
    if (!due) return null;
    const table = sql.table(last.name);
    const { rows } = await sql<{ month: Date; name: string }>`
      select month, to_char(month at time zone 'UTC', '"activity_"YYYY_MM') as name
      from (select date_trunc('month', greatest(now(), ${last.from}, max(at)), 'UTC') + interval '1 month' as month
        from ${table}) next`.execute(trx);
    const [next] = rows;
    if (next === undefined) throw new Error('the database returned no month');
    const [from, to] = [last.from, next.month].map((bound) => sql.lit((bound as Date).toISOString()));
    await sql`alter table activity detach partition ${table}`.execute(trx);
    await sql`alter table activity attach partition ${table} for values from (${from}) to (${to})`.execute(trx);
    await sql`
      create table ${sql.table(next.name)} partition of activity for values from (${to}) to (maxvalue)`.execute(trx);
    return next.name;
  });
}

/**
 * Drops the partitions whose entries are all older than `days`. An empty first partition takes
 * their place, for a clock that jumps back. Returns the names of the dropped ones.
 */
export async function dropActivityPartitions(db: Database, days: number): Promise<string[]> {
  const expired = async (in_: Database): Promise<Partition[]> => {
    const { rows } = await sql<{ cut: Date; filled: boolean }>`
      select now() - ${days} * interval '1 day' as cut, pg_relation_size(${FIRST}) > 0 as filled`.execute(in_);
    const { cut, filled } = rows[0] ?? { cut: new Date(0), filled: false };
    const found = (await listActivityPartitions(in_)).filter(({ to }) => to !== null && to <= cut);
    return found.length === 1 && !filled ? [] : found;
  };
  if ((await expired(db)).length === 0) return [];
  return await inFeedLock(db, async (trx) => {
    const found = await expired(trx);
    const to = found.at(-1)?.to?.toISOString();
    if (to === undefined) return [];
    for (const { name } of found) await sql`drop table ${sql.table(name)}`.execute(trx);
    await sql`
      create table ${sql.table(FIRST)} partition of activity for values from (minvalue) to (${sql.lit(to)})`.execute(
      trx,
    );
    return found.map(({ name }) => name);
  });
}

async function inFeedLock<T>(db: Database, run: (trx: DatabaseTransaction) => Promise<T>): Promise<T> {
  return await db.transaction().execute(async (trx) => {
    await sql`set local lock_timeout = ${LOCK_TIMEOUT}`.execute(trx);
    // A change of a partition also locks the table its rows refer to. A stronger lock on it later
    // would be a deadlock with a caller that writes both, and Postgres would abort the caller.
    await sql`lock table org, activity in access exclusive mode`.execute(trx);
    return await run(trx);
  });
}
