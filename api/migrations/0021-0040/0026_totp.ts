// Authenticator apps (TOTP) and their recovery codes. `secret_sealed` is the shared secret,
// encrypted; `last_step` the time step of the last accepted code, which is not accepted again.
import { sql, type Kysely } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    create table totp (
      user_id text primary key references "user" ("id") on delete cascade,
      secret_sealed bytea not null,
      last_step bigint not null,
      created_at timestamptz not null default now()
    )`.execute(db);
  await sql`
    create table recovery_code (
      user_id text not null references totp (user_id) on delete cascade,
      code_sha256 bytea not null check (octet_length(code_sha256) = 32),
      used_at timestamptz,
      primary key (user_id, code_sha256)
    )`.execute(db);
}
