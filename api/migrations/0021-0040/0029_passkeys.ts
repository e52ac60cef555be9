// Passkeys: the public keys of authenticators. `counter` counts signatures, on authenticators that
// do. `spent_challenge` has the challenges of sign-ins until they expire, so that each works once.
import { sql, type Kysely } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    create table passkey (
      id text primary key,
      user_id text not null references "user" ("id") on delete cascade,
      name text not null,
      public_key bytea not null,
      counter bigint not null,
      created_at timestamptz not null default now(),
      last_used_at timestamptz
    )`.execute(db);
  await sql`create index passkey_user on passkey (user_id, created_at)`.execute(db);
  await sql`
    create table spent_challenge (
      challenge_sha256 bytea primary key check (octet_length(challenge_sha256) = 32),
      spent_at timestamptz not null default now()
    )`.execute(db);
  await sql`create index spent_challenge_age on spent_challenge (spent_at)`.execute(db);
}
