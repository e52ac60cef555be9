// Sealed values of all tables, by the key that sealed them. SQL only: a new sealed column is added
// to SEALED_COLUMNS, so that a rotation seals it again.
import { sql } from 'kysely';
import type { Database, DatabaseTransaction } from '../database/schema.ts';

/** Tables with a sealed column; the row's `id` column names the owner of the value. */
export const SEALED_COLUMNS = [
  { table: 'project', id: 'id', column: 'repo_credentials_sealed', purpose: 'repo-credentials' },
  { table: 'agent_credential', id: 'id', column: 'key_sealed', purpose: 'agent-credentials' },
  { table: 'sandbox_variable', id: 'id', column: 'value_sealed', purpose: 'sandbox-variables' },
  { table: 'sandbox_data_key', id: 'sandbox_id', column: 'key_sealed', purpose: 'sandbox-data' },
  { table: 'totp', id: 'user_id', column: 'secret_sealed', purpose: 'factors' },
] as const;
export type SealedColumn = (typeof SEALED_COLUMNS)[number];

/**
 * Locks at most `limit` values without the prefix, in the order of their ids, skipping rows that
 * another transaction has locked.
 */
export async function lockValuesWithout(
  trx: DatabaseTransaction,
  { table, id, column }: SealedColumn,
  { prefix, after, limit }: { prefix: Buffer; after: string; limit: number },
): Promise<{ id: string; sealed: Buffer }[]> {
  const { rows } = await sql<{ id: string; sealed: Buffer }>`
    select ${sql.ref(id)} as id, ${sql.ref(column)} as sealed from ${sql.table(table)}
    where ${sql.ref(column)} is not null and ${sql.ref(id)} > ${after}
      and substring(${sql.ref(column)} from 1 for ${prefix.length}) <> ${prefix}
    order by ${sql.ref(id)} limit ${limit} for update skip locked`.execute(trx);
  return rows;
}

export async function writeSealed(
  trx: DatabaseTransaction,
  { table, id: idColumn, column }: SealedColumn,
  id: string,
  sealed: Buffer,
): Promise<void> {
  await sql`update ${sql.table(table)} set ${sql.ref(column)} = ${sealed} where ${sql.ref(idColumn)} = ${id}`.execute(
    trx,
  );
}

/** Number of values by the hexadecimal form of their first bytes. */
export async function countByPrefix(db: Database, prefixBytes: number): Promise<Map<string, number>> {
  const counts = new Map<string, number>();
  for (const { table, column } of SEALED_COLUMNS) {
    const { rows } = await sql<{ prefix: string; values: number }>`
      select encode(substring(${sql.ref(column)} from 1 for ${prefixBytes}), 'hex') as prefix, count(*)::int as values
      from ${sql.table(table)} where ${sql.ref(column)} is not null group by 1`.execute(db);
    for (const { prefix, values } of rows) counts.set(prefix, (counts.get(prefix) ?? 0) + values);
  }
  return counts;
}
