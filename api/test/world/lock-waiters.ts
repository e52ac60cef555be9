// Sessions of a database that wait for a lock; tests of concurrent calls poll for them.
import { sql } from 'kysely';
import type { Database } from '../../src/store/database/schema.ts';

/** Other databases of the server are not counted: other test files use them. */
export async function lockWaiters(db: Database, lock?: 'advisory'): Promise<number> {
  const { rows } = await sql<{ count: number }>`
    select count(*)::int as count from pg_stat_activity
    where datname = current_database() and wait_event_type = 'Lock'
      and wait_event = coalesce(${lock ?? null}::text, wait_event)`.execute(db);
  return rows[0]?.count ?? 0;
}
