// Reads entries of the activity feed in the order of their transactions' ids, up to the oldest
// transaction in progress in this database: an entry behind that position is never committed later.
// Transactions of other databases do not count, although a snapshot of Postgres includes them. All
// writers have the role of this connection: it does not see the transactions of others. SQL only.
import { sql } from 'kysely';
import type { ActivityRow, Database } from '../database/schema.ts';

/** Position in the feed: after the entry `seq` of the transaction `xid`. */
export interface FeedPosition {
  atMicroseconds: number;
  xid: string;
  seq: string;
}

export interface FollowFilter {
  orgId: string;
  kinds?: readonly string[] | undefined;
  exceptKinds?: readonly string[] | undefined;
  projectId?: string | undefined;
  sandboxId?: string | undefined;
}

/** Longest time from the start of a transaction to its commit, and largest step of the clock. */
const LONGEST = sql.lit('1 day');

/** Transaction ids in pg_stat_activity are the low 32 bits. */
const SHORT_IDS = 2n ** 32n;

/**
 * Position of all entries that are not committed yet. The statement takes its snapshot first, and
 * then looks at the sessions: a transaction that the snapshot has in progress is there, or has
 * ended.
 */
export async function selectHorizon(db: Database): Promise<FeedPosition> {
  const { rows } = await sql<{ xmax: string; at: string; open: string[] }>`
    select pg_snapshot_xmax(pg_current_snapshot())::text as xmax,
      (extract(epoch from now()) * 1000000)::bigint::text as at,
      array(select backend_xid::text from pg_stat_activity
        where datname = current_database() and backend_xid is not null) as open`.execute(db);
  const { xmax, at, open } = rows[0] ?? { xmax: '0', at: '0', open: [] };
  const next = BigInt(xmax);
  const ids = open.map((short) => {
    const distance = BigInt.asIntN(32, BigInt(short) - (next % SHORT_IDS));
    return next + distance;
  });
  const xid = ids.reduce((least, id) => (id < least ? id : least), next);
  return { atMicroseconds: Number(at), xid: String(xid), seq: '0' };
}

/** Entries after the position and before the horizon, oldest first. */
export async function selectFollowing(
  db: Database,
  filter: FollowFilter,
  { from, horizon, limit }: { from: FeedPosition; horizon: FeedPosition; limit: number },
): Promise<ActivityRow[]> {
  return await db.transaction().execute(async (trx) => {
    // Reads in the order of the index. A sort would read all that follows for every page.
    await sql`set local enable_sort = off`.execute(trx);
    return await followingIn(trx, filter, from, horizon).limit(limit).execute();
  });
}

function followingIn(db: Database, filter: FollowFilter, from: FeedPosition, horizon: FeedPosition) {
  let query = db
    .selectFrom('activity')
    .selectAll()
    .where('org_id', '=', filter.orgId)
    // Skips the partitions of earlier months.
    .where(
      'at',
      '>=',
      sql<Date>`timestamptz 'epoch' + ${from.atMicroseconds}::bigint * interval '1 microsecond' - ${LONGEST}::interval`,
    )
    .where(sql<boolean>`(xid, seq) > (${from.xid}::xid8, ${from.seq}::bigint)`)
    .where(sql<boolean>`xid < ${horizon.xid}::xid8`);
  if (filter.kinds !== undefined) query = query.where('kind', 'in', filter.kinds);
  if (filter.exceptKinds !== undefined) query = query.where('kind', 'not in', filter.exceptKinds);
  if (filter.projectId !== undefined) query = query.where('project_id', '=', filter.projectId);
  if (filter.sandboxId !== undefined) query = query.where('sandbox_id', '=', filter.sandboxId);
  return query.orderBy('xid').orderBy('seq');
}
