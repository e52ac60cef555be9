// Managed agent sessions and their turns, without the text of messages, replies and approvals.
import { sql, type Kysely } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`alter table project add column agent_approvals text not null default 'ask'`.execute(db);
  await sql`
    create table agent_session (
      id text primary key,
      org_id text not null references org (id),
      project_id text not null references project (id),
      sandbox_id text not null references sandbox (id),
      end_user_id text,
      agent text not null,
      surface text not null,
      bridge_state text not null,
      bridge_version integer,
      bridge_reason text,
      turn_id text,
      prompt_id bigint,
      prompt_kind text,
      prompt_turn_id text,
      prompt_asked_at timestamptz,
      last_seq bigint not null default 0,
      signs bigint not null default 0,
      view_epoch integer not null default 0,
      view_run_id text,
      view_revision bigint not null default 0,
      revision bigint not null default 1,
      state_at timestamptz not null default now(),
      created_by text,
      created_at timestamptz not null default now(),
      updated_at timestamptz not null default now(),
      gone_at timestamptz,
      check ((prompt_id is null) = (prompt_kind is null))
    )`.execute(db);
  await sql`create index agent_session_org on agent_session (org_id, created_at desc, id desc)`.execute(db);
  await sql`create index agent_session_sandbox on agent_session (sandbox_id, created_at desc, id desc)`.execute(db);
  await sql`create index agent_session_project on agent_session (project_id, created_at desc, id desc)`.execute(db);
  await sql`
    create index agent_session_prompt on agent_session (org_id, created_at desc, id desc)
    where prompt_id is not null`.execute(db);
  await sql`create index agent_session_gone on agent_session (gone_at) where gone_at is not null`.execute(db);
  await sql`
    create table agent_turn (
      id text primary key,
      session_id text not null references agent_session (id) on delete cascade,
      sandbox_id text not null,
      caller_kind text not null,
      caller_id text not null,
      request_key text,
      text_hmac bytea not null,
      state text not null,
      reason text,
      run_id text,
      caller_user_id text not null,
      dispatched_at timestamptz default now(),
      created_at timestamptz not null default now(),
      started_at timestamptz,
      ended_at timestamptz
    )`.execute(db);
  await sql`
    create unique index agent_turn_key on agent_turn (session_id, caller_kind, caller_id, request_key)
    where request_key is not null`.execute(db);
  await sql`create index agent_turn_session on agent_turn (session_id, created_at desc)`.execute(db);
  await sql`
    create index agent_turn_active on agent_turn (sandbox_id)
    where ended_at is null and dispatched_at is not null`.execute(db);
  await sql`create index agent_turn_ended on agent_turn (ended_at) where ended_at is not null`.execute(db);
}
