// Rows of session tokens, the bearer tokens of people. SQL only; callers pass token hashes.
import { sql } from 'kysely';
import { newId } from '../database/ids.ts';
import type { Database } from '../database/schema.ts';

interface NewSessionToken {
  loginId: string;
  userId: string;
  tokenSha256: Buffer;
  minutes: number;
}

export async function insertSessionToken(
  db: Database,
  token: NewSessionToken,
): Promise<{ id: string; expiresAt: Date }> {
  const row = await db
    .insertInto('session_token')
    .values({
      id: newId('sessionToken'),
      login_id: token.loginId,
      user_id: token.userId,
      token_sha256: token.tokenSha256,
      expires_at: sql<Date>`now() + ${token.minutes} * interval '1 minute'`,
    })
    .returning(['id', 'expires_at'])
    .executeTakeFirstOrThrow();
  return { id: row.id, expiresAt: row.expires_at };
}

interface SessionTokenRow {
  id: string;
  login_id: string;
  user_id: string;
  expires_at: Date;
  /** By the database clock; true also if the sign-in session itself has expired. */
  expired: boolean;
}

/** Finds a token whose sign-in session exists: sign-out deletes both. */
export async function findSessionTokenByHash(db: Database, tokenSha256: Buffer): Promise<SessionTokenRow | undefined> {
  return await db
    .selectFrom('session_token')
    .innerJoin('session', 'session.id', 'session_token.login_id')
    .select(['session_token.id', 'session_token.login_id', 'session_token.user_id', 'session_token.expires_at'])
    .select(sql<boolean>`(session_token.expires_at <= now() or session."expiresAt" <= now())`.as('expired'))
    .where('session_token.token_sha256', '=', tokenSha256)
    .executeTakeFirst();
}

/** Seconds since the sign-in, or its last confirmation; undefined if the session ended. */
export async function secondsSinceSignIn(db: Database, loginId: string): Promise<number | undefined> {
  const row = await db
    .selectFrom('session')
    .select(sql<number>`extract(epoch from now() - "authenticatedAt")::float8`.as('seconds'))
    .where('id', '=', loginId)
    .executeTakeFirst();
  return row?.seconds;
}

/** Records a proof of identity now. Returns false if the sign-in session ended. */
export async function confirmLogin(db: Database, loginId: string): Promise<boolean> {
  const confirmed = await db
    .updateTable('session')
    .set({ authenticatedAt: sql<Date>`now()` })
    .where('id', '=', loginId)
    .executeTakeFirst();
  return confirmed.numUpdatedRows === 1n;
}

/** Spends a generation of refresh tokens. Exactly one of concurrent callers gets true. */
export async function spendRefreshToken(db: Database, loginId: string, generation: number): Promise<boolean> {
  const spent = await db
    .updateTable('session')
    .set({ refreshGeneration: generation + 1, refreshedAt: sql<Date>`now()`, lastUsedAt: sql<Date>`now()` })
    .where('id', '=', loginId)
    .where('refreshGeneration', '=', generation)
    .executeTakeFirst();
  return spent.numUpdatedRows === 1n;
}

/** True if the token's session is that of a client that has spent a refresh token. */
export async function hasSpentRefreshToken(db: Database, token: string): Promise<boolean> {
  const row = await db
    .selectFrom('session')
    .select('id')
    .where('token', '=', token)
    .where('refreshGeneration', '>', 0)
    .executeTakeFirst();
  return row !== undefined;
}

/** True if the generation was the previous one until `seconds` ago at most. */
export async function isJustSpent(
  db: Database,
  { loginId, generation, seconds }: { loginId: string; generation: number; seconds: number },
): Promise<boolean> {
  const row = await db
    .selectFrom('session')
    .select('id')
    .where('id', '=', loginId)
    .where('refreshGeneration', '=', generation + 1)
    .where('refreshedAt', '>', sql<Date>`now() - ${seconds} * interval '1 second'`)
    .executeTakeFirst();
  return row !== undefined;
}

/** True if the sign-in session has not ended. */
export async function hasLogin(db: Database, loginId: string): Promise<boolean> {
  return (await db.selectFrom('session').select('id').where('id', '=', loginId).executeTakeFirst()) !== undefined;
}

/** Deletes a sign-in session with all its session tokens, which are invalid from the commit on. */
export async function deleteLogin(db: Database, loginId: string): Promise<void> {
  await db.deleteFrom('session').where('id', '=', loginId).execute();
}
