// Key of `getOrCreate`, the fields of the create that made the sandbox of the key, and a sandbox's
// own idle time.
import { sql, type Kysely } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    alter table sandbox
      add column key text,
      add column key_fields jsonb,
      add column idle_minutes integer`.execute(db);
  // A sandbox being destroyed no longer has its key, so that a successor can take it.
  await sql`
    create unique index sandbox_live_key on sandbox (project_id, key)
      where key is not null and status not in ('destroying', 'deleted')`.execute(db);
}
