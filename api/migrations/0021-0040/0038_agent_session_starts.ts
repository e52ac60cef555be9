// Finds agent sessions whose start was lost, without a scan of the table.
import { sql, type Kysely } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    create index agent_session_starting on agent_session (updated_at)
    where bridge_state = 'starting'`.execute(db);
}
