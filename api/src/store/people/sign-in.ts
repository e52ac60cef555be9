// Rows of sign-in that the service itself reads and writes beside the sign-in library: passwords,
// waiting devices, expired rows. SQL only.
import { sql } from 'kysely';
import { newId } from '../database/ids.ts';
import type { Database, DatabaseTransaction } from '../database/schema.ts';

/** The library's provider name for password accounts. Their `accountId` is the user id. */
const PASSWORD_PROVIDER = 'credential';

interface PasswordRow {
  userId: string;
  emailVerified: boolean;
  passwordHash: string;
}

/** Password of the account with the address (lower case); undefined if there is none. */
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

/** Hash of the user's password; undefined if there is none. */
export async function findPasswordOfUser(db: Database, userId: string): Promise<string | undefined> {
  const row = await db
    .selectFrom('account')
    .select('password')
    .where('userId', '=', userId)
    .where('providerId', '=', PASSWORD_PROVIDER)
    .executeTakeFirst();
  return row?.password ?? undefined;
}

/** True if the password hash is still this one (null: none). Waits for a concurrent change. */
export async function isPassword(db: Database, userId: string, passwordHash: string | null): Promise<boolean> {
  // Locks the user row, as `putPassword` does: a password row to wait for may not exist yet. The
  // next statement sees the committed change.
  await db.selectFrom('user').select('id').where('id', '=', userId).forShare().execute();
  return ((await findPasswordOfUser(db, userId)) ?? null) === passwordHash;
}

/** True if the provider's person or the address (lower case) has an account. */
export async function hasAccountFor(
  db: Database,
  { providerId, accountId, email }: { providerId: string; accountId: string; email: string },
): Promise<boolean> {
  const { rows } = await sql<{ known: boolean }>`
    select exists (select from account where "providerId" = ${providerId} and "accountId" = ${accountId})
      or exists (select from "user" where email = ${email}) as known`.execute(db);
  return rows[0]?.known === true;
}

/** Creates a user; false if the address (lower case) is taken. */
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

/** Sets or replaces the user's password. Returns false if there is no such user. */
export async function putPassword(trx: DatabaseTransaction, userId: string, passwordHash: string): Promise<boolean> {
  // Held until commit. Otherwise two concurrent changes would both find no password and each insert
  // one.
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

/** True if the address (lower case) has an invitation that can still be accepted. */
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

/** Deletes all but the newest session tokens of a sign-in session. */
export async function deleteOldestSessionTokens(db: Database, loginId: string, kept: number): Promise<void> {
  await sql`
    delete from session_token where id = any(array(
      select id from session_token where login_id = ${loginId}
      order by created_at desc, id offset ${kept} for update skip locked))`.execute(db);
}

interface DeviceRow {
  userCode: string;
  clientId: string | null;
  status: string;
}

/** A device with an unexpired code; undefined if there is none. */
export async function findDevice(db: Database, userCode: string): Promise<DeviceRow | undefined> {
  return await db
    .selectFrom('deviceCode')
    .select(['userCode', 'clientId', 'status'])
    .where('userCode', '=', userCode)
    .where('expiresAt', '>', sql<Date>`now()`)
    .executeTakeFirst();
}

/** Decides about a waiting device. The first decision wins; false if it is not waiting. */
export async function decideDevice(
  db: Database,
  userCode: string,
  { userId, loginId }: { userId: string; loginId: string | null },
  status: 'approved' | 'denied',
): Promise<boolean> {
  const decided = await db
    .updateTable('deviceCode')
    .set({
      status,
      userId,
      viaSso: sql<boolean>`exists (
        select from "session" where id = ${loginId} and "userId" = ${userId} and "viaSso")`,
    })
    .where('userCode', '=', userCode)
    .where('status', '=', 'pending')
    .where('expiresAt', '>', sql<Date>`now()`)
    .executeTakeFirst();
  return decided.numUpdatedRows === 1n;
}

/** Approver, with password hash, of a device yet to fetch the approval; undefined for none. */
export async function findApproval(
  db: Database,
  storedDeviceCode: string,
): Promise<{ userId: string; passwordHash: string | null; viaSso: boolean } | undefined> {
  return await db
    .selectFrom('deviceCode')
    .innerJoin('user', 'user.id', 'deviceCode.userId')
    .leftJoin('account', (join) =>
      join.onRef('account.userId', '=', 'user.id').on('account.providerId', '=', PASSWORD_PROVIDER),
    )
    .select(['user.id as userId', 'account.password as passwordHash', 'deviceCode.viaSso'])
    .where('deviceCode.deviceCode', '=', storedDeviceCode)
    .where('deviceCode.status', '=', 'approved')
    .executeTakeFirst();
}

/** Withdraws the user's approvals that no device has fetched yet. */
export async function denyApprovedDevices(trx: DatabaseTransaction, userId: string): Promise<void> {
  await trx
    .updateTable('deviceCode')
    .set({ status: 'denied' })
    .where('userId', '=', userId)
    .where('status', '=', 'approved')
    .execute();
}

/** Retention of expired rows, in which requests with an expired code or token get the reason. */
const KEPT_HOURS = 24;

/** Tables with an expiry, and the expiry column. */
const EXPIRING = {
  session_token: 'expires_at',
  session: 'expiresAt',
  deviceCode: 'expiresAt',
  verification: 'expiresAt',
  one_time_link: 'expires_at',
} as const;
type ExpiringTable = keyof typeof EXPIRING;
export const EXPIRING_TABLES = Object.keys(EXPIRING) as ExpiringTable[];

/**
 * Deletes at most `limit` rows past retention, oldest first, except locked ones. Returns the count.
 */
export async function deleteExpired(db: Database, table: ExpiringTable, limit: number): Promise<number> {
  const end = sql.ref(EXPIRING[table]);
  const result = await sql`
    delete from ${sql.table(table)} where id = any(array(
      select id from ${sql.table(table)} where ${end} < now() - make_interval(hours => ${KEPT_HOURS})
      order by ${end} limit ${limit} for update skip locked))`.execute(db);
  return Number(result.numAffectedRows ?? 0);
}
