// The part that bridges take in the conversations of terminals.
import { sql, type Kysely } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`alter table agent_session add column conversation text`.execute(db);
}
