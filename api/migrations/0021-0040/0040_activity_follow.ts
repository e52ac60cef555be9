// Stores the transaction of each entry of the activity feed. Transactions commit in another order
// than they start, so a reader that follows the feed needs the order of their ids, up to the
// oldest transaction in progress. Older entries have none: no cursor lies before them.
import { sql, type Kysely } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`alter table activity add column xid xid8`.execute(db);
  await sql`alter table activity alter column xid set default pg_current_xact_id()`.execute(db);
  await sql`create index activity_org_xid on activity (org_id, xid, seq) where xid is not null`.execute(db);
}
