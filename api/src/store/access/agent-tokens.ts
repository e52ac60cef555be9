// Rows of personal agent tokens. SQL only; callers pass token hashes.
import { sql } from 'kysely';
import type { PageRequest, Slice } from '../../rules/page.ts';
import { selectSlice } from '../database/pages.ts';
import type { AgentTokenRow, Database } from '../database/schema.ts';

/** Public columns of a token, without its hash. */
export type KnownTokenRow = Omit<AgentTokenRow, 'token_sha256' | 'revoked_orgs'>;

const KNOWN_COLUMNS = [
  'id',
  'user_id',
  'name',
  'token_prefix',
  'access',
  'can_approve',
  'can_wake',
  'via_sso',
  'created_at',
  'expires_at',
  'revoked_at',
  'last_used_at',
] as const satisfies (keyof KnownTokenRow)[];

interface NewAgentToken extends Pick<
  AgentTokenRow,
  'id' | 'user_id' | 'name' | 'token_sha256' | 'token_prefix' | 'access' | 'can_approve' | 'can_wake' | 'via_sso'
> {
  expiresInDays: number;
}

export async function insertAgentToken(
  db: Database,
  { expiresInDays, ...token }: NewAgentToken,
): Promise<KnownTokenRow> {
  return await db
    .insertInto('agent_token')
    .values({ ...token, expires_at: sql<Date>`now() + ${expiresInDays} * interval '1 day'` })
    .returning(KNOWN_COLUMNS)
    .executeTakeFirstOrThrow();
}

/** Numbers of a user's usable tokens, and of those created within the last hour. */
export async function countAgentTokens(db: Database, userId: string): Promise<{ usable: number; lastHour: number }> {
  return await db
    .selectFrom('agent_token')
    .select([
      sql<number>`(count(*) filter (where revoked_at is null and expires_at > now()))::int`.as('usable'),
      sql<number>`(count(*) filter (where created_at > now() - interval '1 hour'))::int`.as('lastHour'),
    ])
    .where('user_id', '=', userId)
    .executeTakeFirstOrThrow();
}

/** Deletes a user's revoked and expired tokens except the newest `kept`. */
export async function deleteEndedTokens(db: Database, userId: string, kept: number): Promise<void> {
  await sql`delete from agent_token where id in (
    select id from agent_token where user_id = ${userId} and (revoked_at is not null or expires_at <= now())
    order by created_at desc, id desc offset ${kept})`.execute(db);
}

/** A user's tokens, newest first, including expired and revoked ones. */
export async function listAgentTokens(
  db: Database,
  userId: string,
  page: PageRequest | null,
): Promise<Slice<KnownTokenRow>> {
  const query = db.selectFrom('agent_token').select(KNOWN_COLUMNS).where('user_id', '=', userId);
  return await selectSlice(query, { at: 'created_at', tie: 'id', direction: 'desc' }, page);
}

export async function findAgentToken(db: Database, tokenId: string): Promise<KnownTokenRow | undefined> {
  return await db.selectFrom('agent_token').select(KNOWN_COLUMNS).where('id', '=', tokenId).executeTakeFirst();
}

/** Revokes a token. Exactly one of any number of callers, concurrent or not, gets the row. */
export async function revokeAgentToken(db: Database, tokenId: string): Promise<KnownTokenRow | undefined> {
  return await db
    .updateTable('agent_token')
    .set({ revoked_at: sql<Date>`now()` })
    .where('id', '=', tokenId)
    .where('revoked_at', 'is', null)
    .returning(KNOWN_COLUMNS)
    .executeTakeFirst();
}

/** A token of a member of an org. */
export interface MemberTokenRow extends KnownTokenRow {
  email: string;
  /** Revoked for the org. */
  refused: boolean;
}

/** The tokens of an org's members that neither their holders nor the org revoked, newest first. */
export async function listTokensOfMembers(
  db: Database,
  orgId: string,
  page: PageRequest | null,
): Promise<Slice<MemberTokenRow>> {
  const usable = selectOfMembers(db, orgId)
    .where('agent_token.revoked_at', 'is', null)
    .where('agent_token.expires_at', '>', sql<Date>`now()`)
    .where(sql<boolean>`not ${orgId} = any(agent_token.revoked_orgs)`);
  return await selectSlice(usable, { at: 'agent_token.created_at', tie: 'agent_token.id', direction: 'desc' }, page);
}

export async function findTokenOfMember(
  db: Database,
  orgId: string,
  tokenId: string,
): Promise<MemberTokenRow | undefined> {
  return await selectOfMembers(db, orgId).where('agent_token.id', '=', tokenId).executeTakeFirst();
}

function selectOfMembers(db: Database, orgId: string) {
  return db
    .selectFrom('agent_token')
    .innerJoin('membership', 'membership.user_id', 'agent_token.user_id')
    .innerJoin('user', 'user.id', 'agent_token.user_id')
    .select(KNOWN_COLUMNS.map((name) => `agent_token.${name}` as const))
    .select(['user.email', sql<boolean>`${orgId} = any(agent_token.revoked_orgs)`.as('refused')])
    .where('membership.org_id', '=', orgId);
}

/** Revokes a token for an org. Exactly one of any number of callers gets true. */
export async function revokeTokenForOrg(db: Database, orgId: string, tokenId: string): Promise<boolean> {
  const { numUpdatedRows } = await db
    .updateTable('agent_token')
    .set({ revoked_orgs: sql<string[]>`array_append(revoked_orgs, ${orgId})` })
    .where('id', '=', tokenId)
    .where(sql<boolean>`not ${orgId} = any(revoked_orgs)`)
    .executeTakeFirst();
  return numUpdatedRows > 0n;
}

/** Revokes a user's usable tokens. */
export async function revokeAgentTokensOfUser(db: Database, userId: string): Promise<KnownTokenRow[]> {
  return await db
    .updateTable('agent_token')
    .set({ revoked_at: sql<Date>`now()` })
    .where('user_id', '=', userId)
    .where('revoked_at', 'is', null)
    .where('expires_at', '>', sql<Date>`now()`)
    .returning(KNOWN_COLUMNS)
    .execute();
}

/** Records a use of the token. Skips a row that another request is writing. */
export async function touchAgentToken(db: Database, tokenId: string): Promise<void> {
  await sql`update agent_token set last_used_at = now()
    where id = (select id from agent_token where id = ${tokenId} for no key update skip locked)`.execute(db);
}
