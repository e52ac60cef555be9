// The clone of a sandbox's repository.
import { sql, type Kysely } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  // `clone_status`: pending until the clone has come to its end, null without a repository.
  // `clone_epoch`: the epoch that the clone's durable step was begun for, null until the sandbox is
  // awake for the first time; it stays when a resize takes a new one.
  await sql`
    alter table sandbox
      add column clone_status text check (clone_status in ('pending', 'cloned', 'failed')),
      add column clone_epoch integer,
      add column clone_reason_code text,
      add column clone_reason_message text,
      add constraint clone_has_repository check ((clone_status is null) = (repository is null)),
      add constraint failed_clone_has_reason check ((clone_status is not distinct from 'failed') = (clone_reason_code is not null))`.execute(
    db,
  );
  await sql`create index sandbox_cloning on sandbox (id) where clone_status = 'pending' and status <> 'deleted'`.execute(
    db,
  );
}
