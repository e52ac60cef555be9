// Rows of authenticator apps and recovery codes. SQL only.
import { sql } from 'kysely';
import type { Database, DatabaseTransaction } from '../database/schema.ts';

interface TotpRow {
  secretSealed: Buffer;
  since: Date;
  recoveryCodesLeft: number;
}

export async function findTotp(db: Database, userId: string): Promise<TotpRow | undefined> {
  return await db
    .selectFrom('totp')
    .select(['secret_sealed as secretSealed', 'created_at as since'])
    .select(
      sql<number>`(select count(*)::int from recovery_code
        where recovery_code.user_id = totp.user_id and used_at is null)`.as('recoveryCodesLeft'),
    )
    .where('user_id', '=', userId)
    .executeTakeFirst();
}

/** Returns false if the user has an authenticator app already. */
export async function insertTotp(
  trx: DatabaseTransaction,
  { userId, secretSealed, step }: { userId: string; secretSealed: Buffer; step: number },
): Promise<boolean> {
  const made = await trx
    .insertInto('totp')
    .values({ user_id: userId, secret_sealed: secretSealed, last_step: step })
    .onConflict((conflict) => conflict.column('user_id').doNothing())
    .returning('user_id')
    .executeTakeFirst();
  return made !== undefined;
}

/** Uses the code of a time step. Returns false if it, or that of a later step, was used before. */
export async function useStep(db: Database, userId: string, step: number): Promise<boolean> {
  const used = await db
    .updateTable('totp')
    .set({ last_step: step })
    .where('user_id', '=', userId)
    .where('last_step', '<', step)
    .executeTakeFirst();
  return used.numUpdatedRows === 1n;
}

/** Deletes the authenticator app and its recovery codes. Returns false if there was none. */
export async function deleteTotp(db: Database, userId: string): Promise<boolean> {
  const deleted = await db.deleteFrom('totp').where('user_id', '=', userId).executeTakeFirst();
  return deleted.numDeletedRows === 1n;
}

/** Replaces all recovery codes. */
export async function putRecoveryCodes(
  trx: DatabaseTransaction,
  userId: string,
  hashes: readonly Buffer[],
): Promise<void> {
  await trx.deleteFrom('recovery_code').where('user_id', '=', userId).execute();
  await trx
    .insertInto('recovery_code')
    .values(hashes.map((hash) => ({ user_id: userId, code_sha256: hash })))
    .execute();
}

/** Returns false if the code is unknown or was used before. */
export async function useRecoveryCode(db: Database, userId: string, hash: Buffer): Promise<boolean> {
  const used = await db
    .updateTable('recovery_code')
    .set({ used_at: sql<Date>`now()` })
    .where('user_id', '=', userId)
    .where('code_sha256', '=', hash)
    .where('used_at', 'is', null)
    .executeTakeFirst();
  return used.numUpdatedRows === 1n;
}
