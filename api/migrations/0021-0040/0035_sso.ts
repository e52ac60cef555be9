// Single sign-on of orgs: proven mail domains, the requirement, and sign-ins at the OIDC provider.
// Earlier sign-ins count as others: their origin was not stored.
import { sql, type Kysely } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`alter table "session" add column "viaSso" boolean not null default false`.execute(db);
  await sql`alter table "deviceCode" add column "viaSso" boolean not null default false`.execute(db);
  await sql`alter table org add column sso_required boolean not null default false`.execute(db);
  await sql`
    create table org_domain (
      id text primary key,
      org_id text not null references org (id) on delete cascade,
      domain text not null,
      challenge text not null,
      created_at timestamptz not null default now(),
      expires_at timestamptz,
      verified_at timestamptz,
      unique (org_id, domain),
      check ((verified_at is null) <> (expires_at is null))
    )`.execute(db);
  // Unproven claims block nobody.
  await sql`create unique index org_domain_verified on org_domain (domain) where verified_at is not null`.execute(db);
}
