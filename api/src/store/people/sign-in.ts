// The rows of sign-in that the service writes and reads itself beside the sign-in library:
// passwords, devices that wait, what has had its time. SQL only.
import { sql } from 'kysely';
import { newId } from '../database/ids.ts';
import type { Database, DatabaseTransaction } from '../database/schema.ts';

/** The library's name for accounts with a password; their `accountId` is the user's id. */
const PASSWORD_PROVIDER = 'credential';

export interface PasswordRow {
  userId: string;
  emailVerified: boolean;
  passwordHash: string;
}

/** The password of the account with the address (in lower case); undefined when there is none. */
export async function findPassword(db: Database, email: string): Promise<PasswordRow | undefined> {
  const row = await db
    .selectFrom('user')
    .innerJoin('account', (join) =>
      join.onRef('account.userId', '=', 'user.id').on('account.providerId', '=', PASSWORD_PROVIDER),
    )
    .select(['user.id as userId', 'user.emailVerified', 'account.password as passwordHash'])
    .where('user.email', '=', email)
    .where('account.password', 'is not', null)
    .executeTakeFirst();
  return row === undefined || row.passwordHash === null ? undefined : { ...row, passwordHash: row.passwordHash };
}

/**
 * Whether the user's password is still this one; null: none. Waits for who changes it at this
 * moment.
 */
export async function isPassword(db: Database, userId: string, passwordHash: string | null): Promise<boolean> {
  // Of the user, as `putPassword` locks it: there may be no password yet that could be waited for.
  // What it wrote is seen by the statement after this.
  await db.selectFrom('user').select('id').where('id', '=', userId).forShare().execute();
  const row = await db
    .selectFrom('account')
    .select('password')
    .where('userId', '=', userId)
    .where('providerId', '=', PASSWORD_PROVIDER)
    .executeTakeFirst();
  return (row?.password ?? null) === passwordHash;
}

/** Makes a user; false when the address (in lower case) has one. */
export async function insertNewUser(
  trx: DatabaseTransaction,
  user: { id: string; name: string; email: string; emailVerified: boolean },
): Promise<boolean> {
  const made = await trx
    .insertInto('user')
    .values({ ...user, image: null })
    .onConflict((conflict) => conflict.column('email').doNothing())
    .returning('id')
    .executeTakeFirst();
  return made !== undefined;
}

/** Gives the user a password, in place of one it has. False when there is no such user. */
export async function putPassword(trx: DatabaseTransaction, userId: string, passwordHash: string): Promise<boolean> {
  // Held until the end: two changes at once would otherwise both find no password and add one each.
  const user = await trx.selectFrom('user').select('id').where('id', '=', userId).forNoKeyUpdate().executeTakeFirst();
  if (user === undefined) return false;
  const changed = await trx
    .updateTable('account')
    .set({ password: passwordHash, updatedAt: sql<Date>`now()` })
    .where('userId', '=', userId)
    .where('providerId', '=', PASSWORD_PROVIDER)
    .executeTakeFirst();
  if (changed.numUpdatedRows > 0n) return true;
  await trx
    .insertInto('account')
    .values({
      id: newId('signIn'),
      accountId: userId,
      providerId: PASSWORD_PROVIDER,
      userId,
      password: passwordHash,
      updatedAt: sql<Date>`now()`,
    })
    .execute();
  return true;
}

export async function deleteLoginsOfUser(db: Database, userId: string): Promise<void> {
  await db.deleteFrom('session').where('userId', '=', userId).execute();
}

/**
 * Whether somebody invited the address (in lower case), and the invitation can still be accepted.
 */
export async function hasPendingInvitation(db: Database, email: string): Promise<boolean> {
  const row = await db
    .selectFrom('invitation')
    .select('id')
    .where('email', '=', email)
    .where('accepted_at', 'is', null)
    .where('revoked_at', 'is', null)
    .where('expires_at', '>', sql<Date>`now()`)
    .limit(1)
    .executeTakeFirst();
  return row !== undefined;
}

/** Removes all session tokens of a login but the newest ones. */
export async function deleteOldestSessionTokens(db: Database, loginId: string, kept: number): Promise<void> {
  await sql`
    delete from session_token where id = any(array(
      select id from session_token where login_id = ${loginId}
      order by created_at desc, id offset ${kept} for update skip locked))`.execute(db);
}

export interface DeviceRow {
  userCode: string;
  clientId: string | null;
  status: string;
}

/** A device whose code has not had its time; undefined when there is none. */
export async function findDevice(db: Database, userCode: string): Promise<DeviceRow | undefined> {
  return await db
    .selectFrom('deviceCode')
    .select(['userCode', 'clientId', 'status'])
    .where('userCode', '=', userCode)
    .where('expiresAt', '>', sql<Date>`now()`)
    .executeTakeFirst();
}

/**
 * A person's decision about a device that waits; of any number of decisions the first counts. False
 * when it does not wait.
 */
export async function decideDevice(
  db: Database,
  userCode: string,
  userId: string,
  status: 'approved' | 'denied',
): Promise<boolean> {
  const decided = await db
    .updateTable('deviceCode')
    .set({ status, userId })
    .where('userCode', '=', userCode)
    .where('status', '=', 'pending')
    .where('expiresAt', '>', sql<Date>`now()`)
    .executeTakeFirst();
  return decided.numUpdatedRows === 1n;
}

/**
 * Who approved a device that has not come for it yet, and their password; undefined when nobody
 * did.
 */
export async function findApproval(
  db: Database,
  storedDeviceCode: string,
): Promise<{ userId: string; passwordHash: string | null } | undefined> {
  return await db
    .selectFrom('deviceCode')
    .innerJoin('user', 'user.id', 'deviceCode.userId')
    .leftJoin('account', (join) =>
      join.onRef('account.userId', '=', 'user.id').on('account.providerId', '=', PASSWORD_PROVIDER),
    )
    .select(['user.id as userId', 'account.password as passwordHash'])
    .where('deviceCode.deviceCode', '=', storedDeviceCode)
    .where('deviceCode.status', '=', 'approved')
    .executeTakeFirst();
}

/** Takes back what the user approved and no device has come for yet. */
export async function denyApprovedDevices(trx: DatabaseTransaction, userId: string): Promise<void> {
  await trx
    .updateTable('deviceCode')
    .set({ status: 'denied' })
    .where('userId', '=', userId)
    .where('status', '=', 'approved')
    .execute();
}

/**
 * How long what has had its time is kept: a poll of an expired code, or a call with an expired
 * token, is answered with the reason for a while.
 */
const KEPT_HOURS = 24;

/** What goes when its time is up, and when that is. */
const EXPIRING = {
  session_token: 'expires_at',
  session: 'expiresAt',
  deviceCode: 'expiresAt',
  verification: 'expiresAt',
  one_time_link: 'expires_at',
} as const;
export type ExpiringTable = keyof typeof EXPIRING;
export const EXPIRING_TABLES = Object.keys(EXPIRING) as ExpiringTable[];

/**
 * Removes at most `limit` rows whose time was up long ago, the oldest first, and passes over those
 * in use. Returns how many.
 */
export async function deleteExpired(db: Database, table: ExpiringTable, limit: number): Promise<number> {
  const end = sql.ref(EXPIRING[table]);
  const result = await sql`
    delete from ${sql.table(table)} where id = any(array(
      select id from ${sql.table(table)} where ${end} < now() - make_interval(hours => ${KEPT_HOURS})
      order by ${end} limit ${limit} for update skip locked))`.execute(db);
  return Number(result.numAffectedRows ?? 0);
}
