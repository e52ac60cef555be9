// Rows of used grants of team links. SQL only.
import { sql } from 'kysely';
import type { Database } from '../database/schema.ts';

/** Returns true to exactly one of any number of callers, concurrent or not. Deletes old rows. */
export async function spendGrant(db: Database, tokenSha256: Buffer, keptMinutes: number): Promise<boolean> {
  await sql`
    delete from spent_grant where token_sha256 = any(array(
      select token_sha256 from spent_grant where spent_at < now() - make_interval(mins => ${keptMinutes})
      order by spent_at limit 100 for update skip locked))`.execute(db);
  const spent = await db
    .insertInto('spent_grant')
    .values({ token_sha256: tokenSha256 })
    .onConflict((conflict) => conflict.column('token_sha256').doNothing())
    .returning('token_sha256')
    .executeTakeFirst();
  return spent !== undefined;
}
