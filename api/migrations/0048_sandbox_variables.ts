// Environment variables of sandboxes, each value sealed with the installation's secret key.
import { sql, type Kysely } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    create table sandbox_variable (
      id text primary key,
      sandbox_id text not null references sandbox (id) on delete cascade,
      name text not null,
      value_sealed bytea not null,
      bytes integer not null,
      updated_at timestamptz not null default now(),
      unique (sandbox_id, name)
    )`.execute(db);
}
