// The rows of personal agent tokens. SQL only; tokens are hashed before they come here.
import { sql } from 'kysely';
import type { AgentTokenRow, Database } from './schema.ts';

export type PresentedAgentTokenRow = Omit<AgentTokenRow, 'token_sha256'> & { expired: boolean; used_lately: boolean };

/** Times are judged by the database's clock. */
export async function findAgentTokenByHash(db: Database, tokenSha256: Buffer): Promise<PresentedAgentTokenRow | undefined> {
  return await db
    .selectFrom('agent_token')
    .select([
      'id',
      'user_id',
      'name',
      'token_prefix',
      'access',
      'can_approve',
      'can_wake',
      'created_at',
      'expires_at',
      'revoked_at',
      'last_used_at',
    ])
    .select(sql<boolean>`expires_at <= now()`.as('expired'))
    .select(sql<boolean>`coalesce(last_used_at > now() - interval '1 minute', false)`.as('used_lately'))
    .where('token_sha256', '=', tokenSha256)
    .executeTakeFirst();
}

/** Notes that a token was used now. Skips a row that another request is writing. */
export async function touchAgentToken(db: Database, tokenId: string): Promise<void> {
  await sql`update agent_token set last_used_at = now()
    where id = (select id from agent_token where id = ${tokenId} for no key update skip locked)`.execute(db);
}
