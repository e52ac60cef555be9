// Rows of passkeys and spent challenges. SQL only.
import { sql } from 'kysely';
import type { Database } from '../database/schema.ts';

interface PasskeyRow {
  /** The credential's id, in base64url. */
  id: string;
  name: string;
  since: Date;
  lastUsedAt: Date | null;
}

/** A user's passkeys, oldest first. */
export async function listPasskeys(db: Database, userId: string): Promise<PasskeyRow[]> {
  return await db
    .selectFrom('passkey')
    .select(['id', 'name', 'created_at as since', 'last_used_at as lastUsedAt'])
    .where('user_id', '=', userId)
    .orderBy('created_at')
    .orderBy('id')
    .execute();
}

interface PasskeyKey {
  userId: string;
  publicKey: Buffer;
  counter: number;
}

export async function findPasskey(db: Database, id: string): Promise<PasskeyKey | undefined> {
  return await db
    .selectFrom('passkey')
    .select(['user_id as userId', 'public_key as publicKey', sql<number>`counter::float8`.as('counter')])
    .where('id', '=', id)
    .executeTakeFirst();
}

/** Returns false if the credential is registered, for this user or another. */
export async function insertPasskey(
  db: Database,
  passkey: { id: string; userId: string; name: string; publicKey: Buffer; counter: number },
): Promise<boolean> {
  const made = await db
    .insertInto('passkey')
    .values({
      id: passkey.id,
      user_id: passkey.userId,
      name: passkey.name,
      public_key: passkey.publicKey,
      counter: passkey.counter,
    })
    .onConflict((conflict) => conflict.column('id').doNothing())
    .returning('id')
    .executeTakeFirst();
  return made !== undefined;
}

/** Returns false if a concurrent sign-in used the passkey with this counter or a later one. */
export async function usePasskey(db: Database, id: string, before: number, counter: number): Promise<boolean> {
  const used = await db
    .updateTable('passkey')
    .set({ counter, last_used_at: sql<Date>`now()` })
    .where('id', '=', id)
    .where('counter', '=', before)
    .executeTakeFirst();
  return used.numUpdatedRows === 1n;
}

/** Returns false if the user has no such passkey. */
export async function renamePasskey(db: Database, userId: string, id: string, name: string): Promise<boolean> {
  const renamed = await db
    .updateTable('passkey')
    .set({ name })
    .where('id', '=', id)
    .where('user_id', '=', userId)
    .executeTakeFirst();
  return renamed.numUpdatedRows === 1n;
}

/** Returns false if the user has no such passkey. */
export async function deletePasskey(db: Database, userId: string, id: string): Promise<boolean> {
  const deleted = await db.deleteFrom('passkey').where('id', '=', id).where('user_id', '=', userId).executeTakeFirst();
  return deleted.numDeletedRows === 1n;
}

/** Returns false if the challenge was spent before. Deletes old ones. */
export async function spendChallenge(db: Database, sha256: Buffer, keptMinutes: number): Promise<boolean> {
  await sql`
    delete from spent_challenge where challenge_sha256 = any(array(
      select challenge_sha256 from spent_challenge where spent_at < now() - make_interval(mins => ${keptMinutes})
      order by spent_at limit 100 for update skip locked))`.execute(db);
  const spent = await db
    .insertInto('spent_challenge')
    .values({ challenge_sha256: sha256 })
    .onConflict((conflict) => conflict.column('challenge_sha256').doNothing())
    .returning('challenge_sha256')
    .executeTakeFirst();
  return spent !== undefined;
}
