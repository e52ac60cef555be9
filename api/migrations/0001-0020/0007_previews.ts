// Public preview links. A link's URL is derived from its row and the installation's secret key, so
// no secret is stored. Team links have no rows.
import { sql, type Kysely } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  // Rows outlive the entities they name, so they copy the needed columns. `expires_at` is in whole
  // milliseconds, as on the wire.
  await sql`
    create table preview_link (
      id text primary key,
      sandbox_id text not null,
      org_id text not null references org (id),
      project_id text not null,
      port integer not null check (port between 1 and 65535),
      label text,
      end_user_id text,
      created_by text references "user" ("id") on delete set null,
      created_at timestamptz not null default now(),
      expires_at timestamptz not null check (expires_at = date_trunc('milliseconds', expires_at)),
      revoked_at timestamptz,
      last_used_at timestamptz
    )`.execute(db);
  await sql`
    create index preview_link_sandbox on preview_link (sandbox_id, created_at desc, id desc)
    where revoked_at is null`.execute(db);
}
