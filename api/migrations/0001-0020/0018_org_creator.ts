// The user who created an org, so that the orgs of a user can be limited. Earlier orgs get theirs
// from the feed; an org that the operator created has none.
import { sql, type Kysely } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`alter table org add column created_by text references "user" ("id") on delete set null`.execute(db);
  await sql`
    update org set created_by = activity.actor_user_id from activity
    where activity.org_id = org.id and activity.kind = 'org_created'
      and exists (select from "user" where "user"."id" = activity.actor_user_id)`.execute(db);
  await sql`create index org_creator on org (created_by) where created_by is not null`.execute(db);
}
