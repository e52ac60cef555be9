// Rows of user accounts: lookup by address, name and address changes, verification. SQL only;
// sign-in owns passwords.
import { sql } from 'kysely';
import type { Database, UserRow } from '../database/schema.ts';
import type { OneTimeLinkTable } from '../database/tables-people.ts';

/** @param email in lower case, as stored */
export async function findUserByEmail(db: Database, email: string): Promise<UserRow | undefined> {
  return await db.selectFrom('user').selectAll().where('email', '=', email).executeTakeFirst();
}

/**
 * Serialises changes of the account's password and links, and creates and invitations by the user,
 * until the transaction ends. Inserts that refer to the user go on. Lock order: this, then
 * passwords and links, then an org.
 */
export async function lockUser(trx: Database, userId: string): Promise<void> {
  await trx.selectFrom('user').select('id').where('id', '=', userId).forNoKeyUpdate().execute();
}

export async function updateUser(
  db: Database,
  userId: string,
  changes: { name?: string; email?: string; emailVerified?: boolean },
): Promise<void> {
  await db
    .updateTable('user')
    .set({ ...changes, updatedAt: sql<Date>`now()` })
    .where('id', '=', userId)
    .execute();
}

export async function hasPassword(db: Database, userId: string): Promise<boolean> {
  const row = await db
    .selectFrom('account')
    .select('id')
    .where('userId', '=', userId)
    .where('providerId', '=', 'credential')
    .where('password', 'is not', null)
    .executeTakeFirst();
  return row !== undefined;
}

/** Deletes the user's unused links, which stop working with the commit. */
export async function deleteUnusedLinks(
  db: Database,
  userId: string,
  purposes: readonly OneTimeLinkTable['purpose'][],
): Promise<void> {
  await db
    .deleteFrom('one_time_link')
    .where('user_id', '=', userId)
    .where('purpose', 'in', [...purposes])
    .where('used_at', 'is', null)
    .execute();
}
