// Rows of idempotency keys of creates. SQL only.
import { IDEMPOTENCY_KEY } from '@berth/contract/route/limits.ts';
import { sql } from 'kysely';
import type { Database, DatabaseTransaction, IdempotencyKeyRow } from '../database/schema.ts';

type NewIdempotencyKey = Omit<IdempotencyKeyRow, 'created_at'>;

const OLDEST_KEPT = sql<Date>`now() - make_interval(hours => ${IDEMPOTENCY_KEY.keptHours})`;

/**
 * Inserts a key, or takes over an expired one; false if the org used the key recently. Waits for a
 * concurrent insert of the same key, then holds the row until the transaction ends.
 */
export async function insertIdempotencyKey(trx: DatabaseTransaction, key: NewIdempotencyKey): Promise<boolean> {
  const noted = await trx
    .insertInto('idempotency_key')
    .values(key)
    .onConflict((conflict) =>
      conflict
        .columns(['org_id', 'key'])
        .doUpdateSet({ body_sha256: key.body_sha256, sandbox_id: key.sandbox_id, created_at: sql<Date>`now()` })
        .where('idempotency_key.created_at', '<=', OLDEST_KEPT),
    )
    .returning('key')
    .executeTakeFirst();
  return noted !== undefined;
}

export async function findIdempotencyKey(
  db: Database,
  orgId: string,
  key: string,
): Promise<IdempotencyKeyRow | undefined> {
  return await db
    .selectFrom('idempotency_key')
    .selectAll()
    .where('org_id', '=', orgId)
    .where('key', '=', key)
    .executeTakeFirst();
}

/** Deletes at most `limit` expired keys, oldest first, except locked ones. Returns the count. */
export async function deleteOldIdempotencyKeys(db: Database, limit: number): Promise<number> {
  const result = await sql`
    delete from idempotency_key where ctid = any(array(
      select ctid from idempotency_key where created_at <= ${OLDEST_KEPT}
      order by created_at limit ${limit} for update skip locked))`.execute(db);
  return Number(result.numAffectedRows ?? 0);
}
