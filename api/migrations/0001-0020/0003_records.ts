// Records: the activity feed and metered machine time. Rows outlive the entities they name, so they
// copy the needed columns.
import { sql, type Kysely } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    create table activity (
      id text primary key,
      org_id text not null references org (id),
      project_id text,
      sandbox_id text,
      actor_kind text not null,
      actor_id text,
      actor_user_id text,
      kind text not null,
      details jsonb not null default '{}',
      at timestamptz not null default now()
    )`.execute(db);
  await sql`create index activity_org on activity (org_id, at desc, id desc)`.execute(db);
  await sql`create index activity_sandbox on activity (sandbox_id, at) where sandbox_id is not null`.execute(db);

  // `during` is half-open, without an upper bound while the VM runs. The exclusion constraint makes
  // Postgres reject metering a sandbox twice for the same instant. btree_gist (text equality in a
  // gist index) is a trusted extension: the database owner may create it.
  await sql`create extension if not exists btree_gist`.execute(db);
  await sql`
    create table usage_interval (
      id text primary key,
      sandbox_id text not null,
      org_id text not null references org (id),
      project_id text not null,
      end_user_id text,
      vcpu integer not null check (vcpu > 0),
      memory_gb integer not null check (memory_gb > 0),
      disk_gb integer not null check (disk_gb > 0),
      during tstzrange not null check (not lower_inf(during) and lower_inc(during)),
      constraint usage_interval_never_twice exclude using gist (sandbox_id with =, during with &&)
    )`.execute(db);
  await sql`create index usage_interval_org on usage_interval using gist (org_id, during)`.execute(db);
  await sql`create unique index usage_interval_open on usage_interval (sandbox_id) where upper_inf(during)`.execute(db);
}
