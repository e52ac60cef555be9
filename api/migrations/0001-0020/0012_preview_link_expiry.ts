// Preview links, including revoked ones, are deleted long after they expire.
import { sql, type Kysely } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`create index preview_link_expiry on preview_link (expires_at)`.execute(db);
}
