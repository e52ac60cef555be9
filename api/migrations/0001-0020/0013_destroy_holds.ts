// Reservation of a sandbox being destroyed: at most what it had when that began.
import { sql, type Kysely } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  // null unless being destroyed. null while being destroyed: the destroy began before this column
  // or on an older replica, so a VM is assumed.
  await sql`
    alter table sandbox add column destroy_holds text
      check (destroy_holds in ('machine', 'disk', 'nothing'))`.execute(db);
}
