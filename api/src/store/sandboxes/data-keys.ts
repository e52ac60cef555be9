// Rows of data keys, one for each sandbox until it is deleted. SQL only; the values are sealed.
import { sql } from 'kysely';
import type { Database, DatabaseTransaction } from '../database/schema.ts';

export async function findDataKey(db: Database, sandboxId: string): Promise<Buffer | undefined> {
  const row = await db
    .selectFrom('sandbox_data_key')
    .select('key_sealed')
    .where('sandbox_id', '=', sandboxId)
    .executeTakeFirst();
  return row?.key_sealed;
}

/**
 * False if the sandbox has a key or is deleted. The lock orders this behind a deletion in progress.
 */
export async function insertDataKey(db: Database, sandboxId: string, sealed: Buffer): Promise<boolean> {
  const { numAffectedRows } = await sql`
    insert into sandbox_data_key (sandbox_id, key_sealed)
    select id, ${sealed} from sandbox where id = ${sandboxId} and status <> 'deleted' for share
    on conflict (sandbox_id) do nothing`.execute(db);
  return numAffectedRows === 1n;
}

export async function deleteDataKey(trx: DatabaseTransaction, sandboxId: string): Promise<void> {
  await trx.deleteFrom('sandbox_data_key').where('sandbox_id', '=', sandboxId).execute();
}
