// Callers: users, orgs, memberships, API keys. `user` has the shape that the sign-in library
// (better-auth) reads on Postgres, camelCase columns included, so there is one user table. The
// library's other tables come with sign-in.
import { sql, type Kysely } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    create table "user" (
      "id" text not null primary key,
      "name" text not null,
      "email" text not null unique,
      "emailVerified" boolean not null,
      "image" text,
      "createdAt" timestamptz default current_timestamp not null,
      "updatedAt" timestamptz default current_timestamp not null
    )`.execute(db);

  await sql`
    create table org (
      id text primary key,
      name text not null,
      created_at timestamptz not null default now()
    )`.execute(db);

  await sql`
    create table membership (
      org_id text not null references org (id),
      user_id text not null references "user" ("id") on delete cascade,
      role text not null,
      created_at timestamptz not null default now(),
      primary key (org_id, user_id)
    )`.execute(db);
  await sql`create index membership_user on membership (user_id)`.execute(db);

  // The creator's account may be deleted. The key then grants nothing (its creator has no role);
  // its row stays for the activity feed.
  await sql`
    create table api_key (
      id text primary key,
      org_id text not null references org (id),
      created_by text references "user" ("id") on delete set null,
      name text not null,
      token_sha256 bytea not null unique check (octet_length(token_sha256) = 32),
      token_prefix text not null,
      scopes text[],
      created_at timestamptz not null default now(),
      expires_at timestamptz,
      revoked_at timestamptz,
      last_used_at timestamptz
    )`.execute(db);
  await sql`create index api_key_org on api_key (org_id, created_at)`.execute(db);
}
