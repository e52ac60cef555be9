// Bounds the activity entries that the guest of an agent session causes alone: the time of the last
// one of each kind, and the approvals that it does not cover.
import { sql, type Kysely } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    alter table agent_session
      add column prompt_noted_at timestamptz,
      add column prompts_unnoted integer not null default 0,
      add column stop_noted_at timestamptz`.execute(db);
}
