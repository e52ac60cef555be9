// A sign-in of the first owner: some routes take no API keys.
import { join } from 'node:path';
import { newToken, tokenSha256 } from '@berth/api/services/access/bearer-token.ts';
import { insertSessionToken } from '@berth/api/store/access/session-tokens.ts';
import { openDatabase } from '@berth/api/store/database/database.ts';
import { newId } from '@berth/api/store/database/ids.ts';
import { socketDatabaseUrl } from '@berth/machine/roles/database/connection.ts';
import type { Parts } from './parts.ts';

const SESSION_MINUTES = 24 * 60;

/** Access token of a sign-in, as the service makes it. */
export async function ownerSession({ dataFolder }: Pick<Parts, 'dataFolder'>): Promise<string> {
  const { db } = openDatabase({
    url: socketDatabaseUrl(join(dataFolder, 'postgres', 'socket')),
    maxConnections: 1,
    statementTimeoutMs: 10_000,
    onIdleError: () => undefined,
  });
  try {
    const { user_id: userId } = await db
      .selectFrom('membership')
      .select('user_id')
      .where('role', '=', 'owner')
      .executeTakeFirstOrThrow();
    const loginId = newId('signIn');
    const token = newToken('session');
    const times = { expiresAt: new Date(Date.now() + SESSION_MINUTES * 60_000), updatedAt: new Date() };
    await db
      .insertInto('session')
      .values({ id: loginId, userId, token: newToken('session'), ...times, ipAddress: null, userAgent: null })
      .execute();
    await insertSessionToken(db, { loginId, userId, tokenSha256: tokenSha256(token), minutes: SESSION_MINUTES });
    return token;
  } finally {
    await db.destroy();
  }
}
