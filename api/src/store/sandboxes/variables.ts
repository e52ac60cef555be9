// Rows of environment variables of sandboxes. SQL only.
import { sql } from 'kysely';
import type { Database, DatabaseTransaction } from '../database/schema.ts';

interface VariableOf {
  orgId: string;
  sandboxId: string;
  name: string;
}

/** Id of the row, to which its value is sealed. */
export const variableId = ({ orgId, sandboxId, name }: VariableOf): string => `${orgId}:${sandboxId}:${name}`;

/** Without the values. */
export async function listVariables(
  db: Database,
  sandboxId: string,
): Promise<{ name: string; bytes: number; updated_at: Date }[]> {
  return await db
    .selectFrom('sandbox_variable')
    .select(['name', 'bytes', 'updated_at'])
    .where('sandbox_id', '=', sandboxId)
    .orderBy(sql`name collate "C"`)
    .execute();
}

export async function readVariables(
  db: Database,
  sandboxId: string,
): Promise<{ name: string; value_sealed: Buffer }[]> {
  return await db
    .selectFrom('sandbox_variable')
    .select(['name', 'value_sealed'])
    .where('sandbox_id', '=', sandboxId)
    .execute();
}

/** Replaces variables of the same names. Needs the sandbox's lock. */
export async function writeVariables(
  trx: DatabaseTransaction,
  variables: readonly (VariableOf & { sealed: Buffer; bytes: number })[],
): Promise<void> {
  if (variables.length === 0) return;
  await trx
    .insertInto('sandbox_variable')
    .values(
      variables.map(({ sealed, bytes, ...of }) => ({
        id: variableId(of),
        sandbox_id: of.sandboxId,
        name: of.name,
        value_sealed: sealed,
        bytes,
      })),
    )
    .onConflict((conflict) =>
      conflict.column('id').doUpdateSet({
        value_sealed: (row) => row.ref('excluded.value_sealed'),
        bytes: (row) => row.ref('excluded.bytes'),
        updated_at: sql<Date>`now()`,
      }),
    )
    .execute();
}

/** All of the sandbox, or those with the names. */
export async function deleteVariables(trx: DatabaseTransaction, sandboxId: string, names?: string[]): Promise<void> {
  const rows = trx.deleteFrom('sandbox_variable').where('sandbox_id', '=', sandboxId);
  await (names === undefined ? rows : rows.where('name', 'in', names)).execute();
}
