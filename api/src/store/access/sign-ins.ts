// Sign-in sessions as their user sees them. SQL only; the sign-in library creates and extends them.
import { sql } from 'kysely';
import type { PageRequest, Slice } from '../../rules/page.ts';
import { selectSlice } from '../database/pages.ts';
import type { Database } from '../database/schema.ts';

export interface SignInRow {
  id: string;
  user_agent: string | null;
  address: string | null;
  created_at: Date;
  last_used_at: Date;
  expires_at: Date;
}

const COLUMNS = [
  'id',
  // The sign-in library stores an unknown value as an empty text.
  sql<string | null>`nullif("userAgent", '')`.as('user_agent'),
  sql<string | null>`nullif("ipAddress", '')`.as('address'),
  'createdAt as created_at',
  'lastUsedAt as last_used_at',
  'expiresAt as expires_at',
] as const;

/** A user's unexpired sign-ins, newest first. */
export async function listSignIns(db: Database, userId: string, page: PageRequest | null): Promise<Slice<SignInRow>> {
  const query = db
    .selectFrom('session')
    .select(COLUMNS)
    .where('userId', '=', userId)
    .where('expiresAt', '>', sql<Date>`now()`);
  return await selectSlice(query, { at: 'createdAt', tie: 'id', direction: 'desc' }, page);
}

/** Deletes a sign-in with its session tokens; undefined if the user has no such sign-in. */
export async function deleteSignIn(db: Database, userId: string, id: string): Promise<SignInRow | undefined> {
  return await db
    .deleteFrom('session')
    .where('id', '=', id)
    .where('userId', '=', userId)
    .where('expiresAt', '>', sql<Date>`now()`)
    .returning(COLUMNS)
    .executeTakeFirst();
}

/** Deletes a user's sign-ins except one. Returns the number of those that had not expired. */
export async function deleteOtherSignIns(db: Database, userId: string, kept: string): Promise<number> {
  const deleted = await db
    .deleteFrom('session')
    .where('userId', '=', userId)
    .where('id', '<>', kept)
    .returning(sql<boolean>`"expiresAt" > now()`.as('live'))
    .execute();
  return deleted.filter(({ live }) => live).length;
}

/** Deletes a user's sign-ins except the `kept` most recently used. */
export async function deleteSignInsBeyond(db: Database, userId: string, kept: number): Promise<void> {
  await sql`delete from "session" where id = any(array(
    select id from "session" where "userId" = ${userId}
    order by "lastUsedAt" desc, id offset ${kept} for update skip locked))`.execute(db);
}

/** Records a use of the sign-in. Skips a row that another request is writing. */
export async function touchSignIn(db: Database, id: string): Promise<void> {
  await sql`update "session" set "lastUsedAt" = now()
    where id = (select id from "session" where id = ${id} for no key update skip locked)`.execute(db);
}
