// Hosts, projects and sandboxes. The contract (sandboxes/state.ts) defines statuses and
// transitions, so there is no check on them here.
import { sql, type Kysely } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  // `capacity_*`: total reservable capacity of the host; `reserved_*`: its last report of
  // reservations. Placement counts sandbox rows instead of `reserved_*`, under a lock on this row.
  await sql`
    create table host (
      id text primary key,
      url text not null,
      start_id text not null,
      driver text not null,
      accelerator text not null,
      capacity_vcpu integer not null,
      capacity_memory_mib integer not null,
      capacity_disk_gib integer not null,
      reserved_vcpu integer not null,
      reserved_memory_mib integer not null,
      reserved_disk_gib integer not null,
      last_seen_at timestamptz not null,
      created_at timestamptz not null default now()
    )`.execute(db);

  await sql`
    create table project (
      id text primary key,
      org_id text not null references org (id),
      name text not null,
      use_case text not null,
      default_repository text,
      default_branch text,
      default_profile text,
      default_persistence_policy text,
      default_idle_minutes integer check (default_idle_minutes > 0),
      sandbox_machine_hour_limit double precision check (sandbox_machine_hour_limit >= 0),
      created_by text references "user" ("id") on delete set null,
      created_at timestamptz not null default now(),
      updated_at timestamptz not null default now(),
      unique (org_id, id)
    )`.execute(db);
  await sql`create index project_org on project (org_id, created_at desc, id)`.execute(db);

  // `epoch` is the fencing number of the host protocol; every new intent for the VM raises it.
  // `end_user_id` is opaque.
  await sql`
    create table sandbox (
      id text primary key,
      org_id text not null references org (id),
      project_id text not null,
      host_id text references host (id),
      created_by text references "user" ("id") on delete set null,
      name text not null,
      agent text not null,
      status text not null,
      status_reason_code text,
      status_reason_message text,
      status_changed_at timestamptz not null default now(),
      epoch integer not null check (epoch >= 1),
      profile text not null,
      persistence_policy text not null,
      mode text not null,
      ttl_seconds integer check (ttl_seconds > 0),
      expires_at timestamptz,
      repository text,
      branch text,
      ssh_public_key text,
      end_user_id text,
      metadata jsonb not null default '{}',
      allocated_vcpu integer not null check (allocated_vcpu > 0),
      allocated_memory_gb integer not null check (allocated_memory_gb > 0),
      allocated_disk_gb integer not null check (allocated_disk_gb > 0),
      pending_vcpu integer check (pending_vcpu > 0),
      pending_memory_gb integer check (pending_memory_gb > 0),
      pending_disk_gb integer check (pending_disk_gb > 0),
      created_at timestamptz not null default now(),
      updated_at timestamptz not null default now(),
      deleted_at timestamptz,
      foreign key (org_id, project_id) references project (org_id, id),
      constraint pending_is_whole check (num_nulls(pending_vcpu, pending_memory_gb, pending_disk_gb) in (0, 3)),
      constraint reason_is_whole check ((status_reason_code is null) = (status_reason_message is null)),
      constraint deleted_has_time check ((status = 'deleted') = (deleted_at is not null))
    )`.execute(db);
  await sql`
    create index sandbox_org_live on sandbox (org_id, created_at desc, id desc)
    where status <> 'deleted'`.execute(db);
  await sql`
    create index sandbox_org_end_user on sandbox (org_id, end_user_id)
    where status <> 'deleted' and end_user_id is not null`.execute(db);
  await sql`create index sandbox_host_live on sandbox (host_id) where status <> 'deleted'`.execute(db);
}
