// Used grants of team links, until well after they expire, so that each works once.
import { sql, type Kysely } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    create table spent_grant (
      token_sha256 bytea primary key check (octet_length(token_sha256) = 32),
      spent_at timestamptz not null default now()
    )`.execute(db);
  await sql`create index spent_grant_age on spent_grant (spent_at)`.execute(db);
}
