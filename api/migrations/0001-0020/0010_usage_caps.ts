// State of the watch over caps on machine hours: warnings sent, and scopes at a cap with the time
// of first observation.
import { sql, type Kysely } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  // `scope_id`: an org or project id. A changed cap is a new cap with its own warnings.
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

  // Exists while the scope is at an enforced cap. The grace period starts at `since`, the first
  // observation.
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
