// The API key that made a public link: the link stops working when the key is revoked. The feed has
// the key of every earlier link.
import { sql, type Kysely } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  // No foreign key: a link whose key has no row is refused, like that of a revoked key.
  await sql`alter table preview_link add column api_key_id text`.execute(db);
  await sql`
    update preview_link set api_key_id = activity.actor_id from activity
    where activity.sandbox_id = preview_link.sandbox_id and activity.kind = 'preview_link_created'
      and activity.subject_id = preview_link.id and activity.actor_kind = 'api_key'`.execute(db);
}
