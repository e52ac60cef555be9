// One-time links: the welcome of the first start, password resets, address verifications. Only
// hashes of tokens are stored.
import { createHash, randomBytes } from 'node:crypto';
import { sql } from 'kysely';
import { lockUser } from '../../store/people/accounts.ts';
import { newId } from '../../store/database/ids.ts';
import type { Database } from '../../store/database/schema.ts';
import type { OneTimeLinkTable } from '../../store/database/tables-people.ts';

export type LinkPurpose = OneTimeLinkTable['purpose'];

/** 256 random bits. */
export function newLinkToken(): string {
  return randomBytes(32).toString('base64url');
}

const PAGES: { readonly [purpose in LinkPurpose]: string } = {
  welcome: '/welcome',
  reset_password: '/reset-password',
  verify_email: '/verify-email',
};

/** Path of the link's page with the token in the query; prefix it with the public URL. */
export function oneTimeLinkPath(purpose: LinkPurpose, token: string): string {
  return `${PAGES[purpose]}?token=${token}`;
}

export function linkTokenSha256(token: string): Buffer {
  return createHash('sha256').update(token).digest();
}

/**
 * Creates a link and returns its token. The user's earlier links for the same purpose stop working.
 * Call it in a transaction.
 */
export async function makeOneTimeLink(
  trx: Database,
  link: { purpose: LinkPurpose; userId: string; minutes: number },
): Promise<string> {
  const token = newLinkToken();
  // Without the lock, concurrent calls would not see each other's links and would keep both.
  await lockUser(trx, link.userId);
  await trx
    .deleteFrom('one_time_link')
    .where('user_id', '=', link.userId)
    .where('purpose', '=', link.purpose)
    .execute();
  await trx
    .insertInto('one_time_link')
    .values({
      id: newId('oneTimeLink'),
      purpose: link.purpose,
      user_id: link.userId,
      token_sha256: linkTokenSha256(token),
      expires_at: sql<Date>`now() + ${link.minutes} * interval '1 minute'`,
      used_at: null,
    })
    .execute();
  return token;
}

/** The link's user, without consuming the link; null if it is unknown, used or expired. */
export async function findOneTimeLink(
  db: Database,
  purpose: LinkPurpose,
  token: string,
): Promise<{ userId: string } | null> {
  const row = await db
    .selectFrom('one_time_link')
    .select('user_id')
    .where('token_sha256', '=', linkTokenSha256(token))
    .where('purpose', '=', purpose)
    .where('used_at', 'is', null)
    .where('expires_at', '>', sql<Date>`now()`)
    .executeTakeFirst();
  return row === undefined ? null : { userId: row.user_id };
}

/** Consumes the link: exactly one of any number of concurrent callers gets the user. */
export async function useOneTimeLink(
  trx: Database,
  purpose: LinkPurpose,
  token: string,
): Promise<{ userId: string } | null> {
  const row = await trx
    .updateTable('one_time_link')
    .set({ used_at: sql<Date>`now()` })
    .where('token_sha256', '=', linkTokenSha256(token))
    .where('purpose', '=', purpose)
    .where('used_at', 'is', null)
    .where('expires_at', '>', sql<Date>`now()`)
    .returning('user_id')
    .executeTakeFirst();
  return row === undefined ? null : { userId: row.user_id };
}
