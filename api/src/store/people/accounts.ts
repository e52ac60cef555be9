// What becomes of a user's account: found by its address, given its name and address, held to be
// verified. SQL only; passwords are sign-in's.
import { sql } from 'kysely';
import type { Database, UserRow } from '../database/schema.ts';
import type { OneTimeLinkTable } from '../database/tables-people.ts';

/** @param email in lower case, as all of them are stored */
export async function findUserByEmail(db: Database, email: string): Promise<UserRow | undefined> {
  return await db.selectFrom('user').selectAll().where('email', '=', email).executeTakeFirst();
}

/**
 * Makes changes of the account's password and of its links, and the invitations that the user
 * sends, wait for one another until the transaction ends. Comes before any lock on passwords and
 * links, and after that on an org.
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

/** Whether the user can sign in with a password. */
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

/** Removes links of the user that were not used: they stop working with the commit. */
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
