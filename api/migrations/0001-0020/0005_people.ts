// People and their credentials: sign-in, session tokens, personal agent tokens, invitations. Also
// project deletion and the order of the feed. `session`, `account`, `verification` and `deviceCode`
// have the shape of the sign-in library (better-auth 1.7).
import { sql, type Kysely } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  // A sign-in session, held as a refresh token or the console's cookie. Its `token` alone opens
  // nothing: callers hold it with a signature.
  await sql`
    create table "session" (
      "id" text not null primary key,
      "expiresAt" timestamptz not null,
      "token" text not null unique,
      "createdAt" timestamptz default current_timestamp not null,
      "updatedAt" timestamptz not null,
      "ipAddress" text,
      "userAgent" text,
      "userId" text not null references "user" ("id") on delete cascade
    )`.execute(db);
  await sql`create index "session_userId_idx" on "session" ("userId")`.execute(db);

  await sql`
    create table "account" (
      "id" text not null primary key,
      "accountId" text not null,
      "providerId" text not null,
      "userId" text not null references "user" ("id") on delete cascade,
      "accessToken" text,
      "refreshToken" text,
      "idToken" text,
      "accessTokenExpiresAt" timestamptz,
      "refreshTokenExpiresAt" timestamptz,
      "scope" text,
      "password" text,
      "createdAt" timestamptz default current_timestamp not null,
      "updatedAt" timestamptz not null
    )`.execute(db);
  await sql`create index "account_userId_idx" on "account" ("userId")`.execute(db);
  // A provider's user has a single account, even after two concurrent first sign-ins.
  await sql`create unique index "account_provider_idx" on "account" ("providerId", "accountId")`.execute(db);

  await sql`
    create table "verification" (
      "id" text not null primary key,
      "identifier" text not null,
      "value" text not null,
      "expiresAt" timestamptz not null,
      "createdAt" timestamptz default current_timestamp not null,
      "updatedAt" timestamptz default current_timestamp not null
    )`.execute(db);
  await sql`create index "verification_identifier_idx" on "verification" ("identifier")`.execute(db);

  await sql`
    create table "deviceCode" (
      "id" text not null primary key,
      "deviceCode" text not null unique,
      "userCode" text not null unique,
      "userId" text,
      "expiresAt" timestamptz not null,
      "status" text not null,
      "lastPolledAt" timestamptz,
      "pollingInterval" integer,
      "clientId" text,
      "scope" text
    )`.execute(db);

  // Bearer tokens of people, valid for about an hour. Sign-out deletes the sign-in session's row,
  // and its tokens with it.
  await sql`
    create table session_token (
      id text primary key,
      login_id text not null references "session" ("id") on delete cascade,
      user_id text not null references "user" ("id") on delete cascade,
      token_sha256 bytea not null unique check (octet_length(token_sha256) = 32),
      created_at timestamptz not null default now(),
      expires_at timestamptz not null
    )`.execute(db);
  await sql`create index session_token_login on session_token (login_id)`.execute(db);
  await sql`create index session_token_expiry on session_token (expires_at)`.execute(db);

  await sql`
    create table agent_token (
      id text primary key,
      user_id text not null references "user" ("id") on delete cascade,
      name text not null,
      token_sha256 bytea not null unique check (octet_length(token_sha256) = 32),
      token_prefix text not null,
      access text not null check (access in ('read_only', 'read_send')),
      can_approve boolean not null,
      can_wake boolean not null,
      created_at timestamptz not null default now(),
      expires_at timestamptz not null,
      revoked_at timestamptz,
      last_used_at timestamptz,
      check (access = 'read_send' or not (can_approve or can_wake))
    )`.execute(db);
  await sql`create index agent_token_user on agent_token (user_id, created_at desc, id desc)`.execute(db);

  // The token is made when the mail is sent: there is none before `sent_at`, and a repeated mail
  // has a new one.
  await sql`
    create table invitation (
      id text primary key,
      org_id text not null references org (id),
      email text not null check (email = lower(email)),
      role text not null,
      invited_by text references "user" ("id") on delete set null,
      token_sha256 bytea unique check (octet_length(token_sha256) = 32),
      created_at timestamptz not null default now(),
      expires_at timestamptz not null,
      sent_at timestamptz,
      accepted_at timestamptz,
      accepted_by text references "user" ("id") on delete set null,
      revoked_at timestamptz,
      check (num_nonnulls(accepted_at, revoked_at) <= 1)
    )`.execute(db);
  await sql`
    create unique index invitation_pending on invitation (org_id, email)
    where accepted_at is null and revoked_at is null`.execute(db);
  await sql`create index invitation_org on invitation (org_id, created_at desc, id desc)`.execute(db);
  // Counts a person's recent invitations.
  await sql`
    create index invitation_inviter on invitation (invited_by, created_at)
    where invited_by is not null`.execute(db);

  // One-time links: first start, password reset.
  await sql`
    create table one_time_link (
      id text primary key,
      purpose text not null check (purpose in ('welcome', 'reset_password', 'verify_email')),
      user_id text not null references "user" ("id") on delete cascade,
      token_sha256 bytea not null unique check (octet_length(token_sha256) = 32),
      created_at timestamptz not null default now(),
      expires_at timestamptz not null,
      used_at timestamptz
    )`.execute(db);
  await sql`create index one_time_link_user on one_time_link (user_id, purpose)`.execute(db);

  // Token buckets of rate limits, keyed by a hash of the limited account or address.
  await sql`
    create table throttle (
      key_sha256 bytea primary key check (octet_length(key_sha256) = 32),
      tokens double precision not null,
      refilled_at timestamptz not null
    )`.execute(db);
  await sql`create index throttle_age on throttle (refilled_at)`.execute(db);

  await sql`
    alter table project
      add column metadata jsonb not null default '{}',
      add column repo_credentials_sealed bytea,
      add column deleted_at timestamptz`.execute(db);
  await sql`drop index project_org`.execute(db);
  await sql`create index project_org on project (org_id, created_at desc, id desc) where deleted_at is null`.execute(
    db,
  );

  // Lists are ordered by instant and id, in one direction (store/database/pages.ts).
  await sql`drop index api_key_org`.execute(db);
  await sql`create index api_key_org on api_key (org_id, created_at desc, id desc)`.execute(db);
  await sql`create index membership_org on membership (org_id, created_at, user_id)`.execute(db);

  // `seq` orders the rows of one transaction, which share `at`.
  await sql`
    alter table activity
      add column seq bigint generated always as identity,
      add column request_id text,
      add column subject_kind text,
      add column subject_id text`.execute(db);
  await sql`
    update activity set
      subject_kind = case when sandbox_id is not null then 'sandbox' when kind = 'api_key_created' then 'api_key'
        when project_id is not null then 'project' else 'org' end,
      subject_id = case when sandbox_id is not null then sandbox_id
        when kind = 'api_key_created' then details ->> 'keyId'
        when project_id is not null then project_id else org_id end`.execute(db);
  await sql`alter table activity alter column subject_kind set not null, alter column subject_id set not null`.execute(
    db,
  );
  await sql`drop index activity_org`.execute(db);
  await sql`drop index activity_sandbox`.execute(db);
  await sql`create index activity_org on activity (org_id, at desc, seq desc)`.execute(db);
  await sql`create index activity_org_kind on activity (org_id, kind, at desc, seq desc)`.execute(db);
  await sql`
    create index activity_project on activity (project_id, at desc, seq desc)
    where project_id is not null`.execute(db);
  await sql`
    create index activity_sandbox on activity (sandbox_id, at desc, seq desc)
    where sandbox_id is not null`.execute(db);
}
