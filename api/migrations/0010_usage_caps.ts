// What the watch over caps on machine hours has done: whom it warned of what, and who is at a cap
// since when.
import { sql, type Kysely } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  // `scope_id` is the org's id or a project's. A cap that is changed is another cap: its own shares
  // are warned of.
  await sql`
    create table usage_cap_warning (
      scope_id text not null,
      period_starts_at timestamptz not null,
      cap_hours double precision not null,
      percent integer not null,
      org_id text not null references org (id),
      warned_at timestamptz not null default now(),
      primary key (scope_id, period_starts_at, cap_hours, percent)
    )`.execute(db);
  await sql`create index usage_cap_warning_age on usage_cap_warning (warned_at)`.execute(db);

  // There while the scope is at a cap that is enforced; `since` is when that was first seen, from
  // when the time of grace runs.
  await sql`
    create table usage_cap_reached (
      scope_id text primary key,
      org_id text not null references org (id),
      project_id text,
      period_starts_at timestamptz not null,
      cap_hours double precision not null,
      since timestamptz not null
    )`.execute(db);
}
