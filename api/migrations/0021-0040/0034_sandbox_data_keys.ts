// Data keys of sandboxes, sealed with the installation's secret key. Earlier sandboxes get theirs
// with their next sleep or wake.
import { sql, type Kysely } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    create table sandbox_data_key (
      sandbox_id text primary key references sandbox (id) on delete cascade,
      key_sealed bytea not null
    )`.execute(db);
}
