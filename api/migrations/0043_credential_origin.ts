// Origin of the sign-in behind each API key and personal agent token, and the orgs for which a
// token is revoked. Earlier credentials count as made without SSO: their origin was not stored.
import { sql, type Kysely } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`alter table api_key add column via_sso boolean not null default false`.execute(db);
  await sql`
    alter table agent_token
      add column via_sso boolean not null default false,
      add column revoked_orgs text[] not null default '{}'`.execute(db);
}
