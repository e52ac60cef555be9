// Clones of sandbox repositories.
import { sql, type Kysely } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  // `clone_status`: pending until the clone finishes, null without a repository. `clone_epoch`:
  // epoch of the clone's durable step, null until the sandbox is first awake; a resize, which
  // raises the epoch, leaves it.
  await sql`
    alter table sandbox
      add column clone_status text check (clone_status in ('pending', 'cloned', 'failed')),
      add column clone_epoch integer,
      add column clone_reason_code text,
      add column clone_reason_message text,
      add constraint clone_has_repository check ((clone_status is null) = (repository is null)),
      add constraint failed_clone_has_reason check (
        (clone_status is not distinct from 'failed') = (clone_reason_code is not null))`.execute(db);
  await sql`
    create index sandbox_cloning on sandbox (id)
    where clone_status = 'pending' and status <> 'deleted'`.execute(db);
}
