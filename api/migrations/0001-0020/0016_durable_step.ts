// Durable steps: work that outlives the process that began it. Takes over the queued and running
// steps of an earlier version from the tables of the library `dbos`, and leaves those tables to
// replicas of that version.
import { sql, type Kysely } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    create table durable_step (
      id text primary key,
      kind text not null,
      org_id text not null,
      input jsonb not null,
      enqueued_at timestamptz not null default now(),
      -- The process that runs it.
      claimed_by text
    )`.execute(db);
  const { rows } = await sql`select where to_regclass('dbos.workflow_status') is not null`.execute(db);
  if (rows.length === 0) return;
  const unfinished = sql`
    select split_part(workflow_uuid, ':', 1) as kind, split_part(workflow_uuid, ':', 2) as subject,
      split_part(workflow_uuid, ':', 3) as epoch, created_at
    from dbos.workflow_status where status in ('ENQUEUED', 'DELAYED', 'PENDING')`;
  await sql`
    insert into durable_step (id, kind, org_id, input, enqueued_at)
    select kind || ':' || sandbox.id || ':' || step.epoch, kind, org_id,
      jsonb_build_object('sandboxId', sandbox.id, 'epoch', step.epoch::int), to_timestamp(step.created_at / 1000.0)
    from (${unfinished}) step join sandbox on sandbox.id = subject
    where kind in ('provision', 'sleep', 'wake', 'resize', 'destroy', 'clone')`.execute(db);
  await sql`
    insert into durable_step (id, kind, org_id, input, enqueued_at)
    select kind || ':' || invitation.id, kind, org_id,
      jsonb_build_object('invitationId', invitation.id, 'askedAtMs', step.created_at),
        to_timestamp(step.created_at / 1000.0)
    from (${unfinished}) step join invitation on invitation.id = subject
    where kind = 'invitation-mail'
    on conflict do nothing`.execute(db);
}
