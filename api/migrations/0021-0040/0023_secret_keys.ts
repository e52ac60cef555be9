// Rotation of the secret key and the host token: the secrets that each replica has loaded, and when
// a secret key last sealed or signed.
import { sql, type Kysely } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  // Ids, which disclose nothing about the secrets; the current one first.
  await sql`
    create table secret_replica (
      replica_id text primary key,
      secret_key_ids text[] not null,
      host_token_ids text[] not null,
      reported_at timestamptz not null default now()
    )`.execute(db);
  await sql`
    create table secret_key_use (
      key_id text primary key,
      current_at timestamptz not null default now()
    )`.execute(db);
}
