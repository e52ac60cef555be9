// The database clock, by which time is metered, independent of the replicas' clocks. SQL only.
import { sql } from 'kysely';
import type { Database } from './schema.ts';

/** Current time in whole milliseconds. */
export async function readClock(db: Database): Promise<Date> {
  const { rows } = await sql<{ at: Date }>`select date_trunc('milliseconds', clock_timestamp()) as at`.execute(db);
  const at = rows[0]?.at;
  if (at === undefined) throw new Error('the database returned no time');
  return at;
}
