// What a sandbox keeps reserved while it is being destroyed: what it had when that began, not more.
import { sql, type Kysely } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  // Null of one that is not being destroyed; of one whose destroy began before this column, or on a
  // replica that does not know it, nobody can tell: a machine.
  await sql`alter table sandbox add column destroy_holds text check (destroy_holds in ('machine', 'disk', 'nothing'))`.execute(
    db,
  );
}
