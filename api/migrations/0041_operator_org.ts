// The operator's org, whose members read about the hosts, and the warm pool that a host reports. An
// earlier installation has the org of its first start: the oldest one, if no user created it.
import { sql, type Kysely } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`alter table org add column is_operator boolean not null default false`.execute(db);
  await sql`create unique index org_operator on org (is_operator) where is_operator`.execute(db);
  // An org also loses its creator with the account, so its feed must not name one.
  await sql`
    update org set is_operator = true
    where id = (select id from org order by created_at, id limit 1) and created_by is null
      and not exists (select from activity
        where org_id = org.id and kind = 'org_created' and actor_kind <> 'operator')`.execute(db);
  await sql`alter table host add column pool_ready integer, add column pool_target integer`.execute(db);
}
