// Sessions whose agent may act without approval, to make it ask again. Sessions that an earlier
// version started are not marked: they ask after a recovery.
import { sql, type Kysely } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`alter table agent_session add column unattended boolean not null default false`.execute(db);
  await sql`create index agent_session_unattended on agent_session (project_id) where unattended`.execute(db);
}
