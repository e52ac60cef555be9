// Stores the credential that created an agent session: its entry in the feed is made with the first
// view of the guest, also after the call that created it is lost.
import { sql, type Kysely } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    alter table agent_session
      add column creator_kind text,
      add column creator_id text`.execute(db);
}
