// Expiry of ephemeral sandboxes. SQL only, on the database clock, so replicas need not agree on the
// time.
import { sql } from 'kysely';
import type { Database, DatabaseTransaction, SandboxRow } from '../database/schema.ts';

/**
 * Sandboxes that expired at least `overdueMs` ago and are not being destroyed, longest overdue
 * first, at most `limit`.
 */
export async function listExpired(db: Database, overdueMs: number, limit: number): Promise<string[]> {
  const rows = await db
    .selectFrom('sandbox')
    .select('id')
    .where('expires_at', '<=', sql<Date>`clock_timestamp() - make_interval(secs => ${overdueMs / 1_000})`)
    // Matches the partial index. Both are beyond expiry.
    .where('status', 'not in', ['destroying', 'deleted'])
    .orderBy('expires_at')
    .limit(limit)
    .execute();
  return rows.map((row) => row.id);
}

/** True if the sandbox has expired. Call under its row lock, so that no renewal intervenes. */
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
 * Extends the expiry by one time to live; undefined, with nothing changed, if it has passed. The
 * caller holds the row lock.
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
