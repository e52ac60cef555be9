// Index that serves a page of the activity feed, filtered by project and kind, in feed order.
import { sql, type Kysely } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    create index activity_project_kind on activity (project_id, kind, at desc, seq desc) where project_id is not null
  `.execute(db);
}
