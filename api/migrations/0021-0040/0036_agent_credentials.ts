// Model keys of projects, one per agent, sealed with the installation's secret key. Each key has a
// new revision, which the hosts report.
import { sql, type Kysely } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    create table agent_credential (
      id text primary key,
      project_id text not null references project (id) on delete cascade,
      agent text not null,
      endpoint text not null,
      key_sealed bytea not null,
      revision integer generated always as identity,
      updated_at timestamptz not null default now(),
      unique (project_id, agent)
    )`.execute(db);
}
