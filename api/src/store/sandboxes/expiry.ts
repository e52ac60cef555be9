// When ephemeral sandboxes end. SQL only; the instants are the database's, so that replicas need
// not agree on the time.
import { sql } from 'kysely';
import type { Database, DatabaseTransaction, SandboxRow } from '../database/schema.ts';

/**
 * Sandboxes that expired at least `overdueMs` ago and were not ended yet, the longest overdue
 * first, at most `limit`.
 */
export async function listExpired(db: Database, overdueMs: number, limit: number): Promise<string[]> {
  const rows = await db
    .selectFrom('sandbox')
    .select('id')
    .where('expires_at', '<=', sql<Date>`clock_timestamp() - make_interval(secs => ${overdueMs / 1_000})`)
    // As in the index over them: neither can be ended again.
    .where('status', 'not in', ['destroying', 'deleted'])
    .orderBy('expires_at')
    .limit(limit)
    .execute();
  return rows.map((row) => row.id);
}

/**
 * Whether the sandbox's time is up. To be asked under its row's lock: a renewal may have come in
 * between.
 */
export async function hasExpired(trx: DatabaseTransaction, sandboxId: string): Promise<boolean> {
  const row = await trx
    .selectFrom('sandbox')
    .select('id')
    .where('id', '=', sandboxId)
    .where('expires_at', '<=', sql<Date>`clock_timestamp()`)
    .executeTakeFirst();
  return row !== undefined;
}

/**
 * Moves the expiry by one time to live; undefined, with nothing changed, when it has passed. The
 * caller holds the row's lock.
 */
export async function extendExpiry(
  trx: DatabaseTransaction,
  sandboxId: string,
  ttlSeconds: number,
): Promise<SandboxRow | undefined> {
  return await trx
    .updateTable('sandbox')
    .set({
      expires_at: sql<Date>`expires_at + make_interval(secs => ${ttlSeconds})`,
      updated_at: sql<Date>`now()`,
    })
    .where('id', '=', sandboxId)
    .where('expires_at', '>', sql<Date>`clock_timestamp()`)
    .returningAll()
    .executeTakeFirst();
}
