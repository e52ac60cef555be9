// Links whose app pages of other origins may frame. Earlier links do not allow it.
import { sql, type Kysely } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`alter table preview_link add column embeddable boolean not null default false`.execute(db);
}
