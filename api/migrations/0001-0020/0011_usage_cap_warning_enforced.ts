// Records whether a cap warning announced that work stops at the cap. If that changes, the warning
// is outdated and is sent again.
import { sql, type Kysely } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    alter table usage_cap_warning
      add column enforced boolean not null default true,
      drop constraint usage_cap_warning_pkey,
      add primary key (scope_id, period_starts_at, cap_hours, percent, enforced)`.execute(db);
  await sql`alter table usage_cap_warning alter column enforced drop default`.execute(db);
}
