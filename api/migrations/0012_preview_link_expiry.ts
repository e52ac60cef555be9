// Links to previews are removed when they expired long ago, revoked ones among them.
import { sql, type Kysely } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`create index preview_link_expiry on preview_link (expires_at)`.execute(db);
}
