// Sandbox lifecycle: wake sources, signs of use, renewals, samples; plans of orgs; idempotent
// creates.
import { sql, type Kysely } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  // `pending_recommended`: the pending allocation comes from a metrics sample and the next sample
  // may replace it; false: it was requested. `wakes_from`: state on the host for a wake; null for
  // none or while awake. `resizing`: a step is resizing to the pending allocation, which is
  // reserved until it ends. `session_started_at` of an ephemeral sandbox is its creation.
  await sql`
    alter table sandbox
      add column pending_recommended boolean not null default false,
      add column wakes_from text check (wakes_from in ('snapshot', 'disk')),
      add column last_wake_at timestamptz,
      add column last_wake_from text check (last_wake_from in ('snapshot', 'disk')),
      add column last_wake_reason text,
      add column last_active_at timestamptz not null default now(),
      add column resizing boolean not null default false,
      add constraint resizing_has_target check (not resizing or pending_vcpu is not null),
      add constraint recommended_is_pending check (not pending_recommended or pending_vcpu is not null),
      add constraint wake_is_whole check ((last_wake_at is null) = (last_wake_from is null)),
      add constraint ephemeral_has_ttl check (
        (mode = 'ephemeral') = (ttl_seconds is not null) and (mode = 'ephemeral') = (expires_at is not null))`.execute(
    db,
  );
  await sql`
    create index sandbox_expiring on sandbox (expires_at)
    where expires_at is not null and status not in ('destroying', 'deleted')`.execute(db);

  // Largest VM size the host supports, regardless of free capacity; null until reported.
  await sql`
    alter table host
      add column largest_vcpu integer,
      add column largest_memory_mib integer,
      add column largest_disk_gib integer`.execute(db);

  await sql`alter table project add column wake_on_use boolean not null default false`.execute(db);
  await sql`alter table project drop constraint project_default_idle_minutes_check`.execute(db);
  await sql`
    alter table project
      add constraint project_default_idle_minutes_check check (default_idle_minutes >= 0)`.execute(db);

  // An org's plan by its catalogue name. Transactions that count against the plan lock the row.
  await sql`
    create table subscription (
      org_id text primary key references org (id),
      plan text not null,
      status text not null check (status in ('active', 'ended')),
      started_at timestamptz not null default now()
    )`.execute(db);
  await sql`
    insert into subscription (org_id, plan, status, started_at)
    select id, 'self-hosted', 'active', created_at from org`.execute(db);

  // Only the body's hash is kept; a replay returns the sandbox's current state.
  await sql`
    create table idempotency_key (
      org_id text not null references org (id),
      key text not null,
      body_sha256 bytea not null check (octet_length(body_sha256) = 32),
      sandbox_id text not null,
      created_at timestamptz not null default now(),
      primary key (org_id, key)
    )`.execute(db);
  await sql`create index idempotency_key_age on idempotency_key (created_at)`.execute(db);

  // Fractions of the allocation in force, 0 to 1; cpu covers the time since the previous sample.
  await sql`
    create table metrics_sample (
      id text primary key,
      sandbox_id text not null references sandbox (id),
      at timestamptz not null default now(),
      uptime_seconds double precision not null,
      cpu_busy_ms double precision not null,
      vcpu integer not null,
      memory_gb integer not null,
      disk_gb integer not null,
      cpu_used real check (cpu_used between 0 and 1),
      memory_used real not null check (memory_used between 0 and 1),
      disk_used real not null check (disk_used between 0 and 1)
    )`.execute(db);
  await sql`create index metrics_sample_sandbox on metrics_sample (sandbox_id, at desc)`.execute(db);
}
