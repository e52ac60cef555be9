// At most one terminal session of a sandbox.
import { sql, type Kysely } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    create unique index agent_session_terminal on agent_session (sandbox_id)
    where surface = 'terminal' and gone_at is null`.execute(db);
}
