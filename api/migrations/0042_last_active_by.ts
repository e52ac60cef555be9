// Kind of the last use of a sandbox. Uses before this version have none.
import { sql, type Kysely } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`alter table sandbox add column last_active_by text`.execute(db);
}
