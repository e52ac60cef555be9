// A warning of a cap says whether work stops at it; when that changes, what was said is wrong and
// is said anew.
import { sql, type Kysely } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    alter table usage_cap_warning
      add column enforced boolean not null default true,
      drop constraint usage_cap_warning_pkey,
      add primary key (scope_id, period_starts_at, cap_hours, percent, enforced)`.execute(db);
  await sql`alter table usage_cap_warning alter column enforced drop default`.execute(db);
}
