// Attempts that a host refused under a sandbox's egress policy, as last noted in the activity feed.
import { sql, type Kysely } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    alter table sandbox
      add column egress_denied jsonb,
      add column egress_denied_at timestamptz`.execute(db);
}
