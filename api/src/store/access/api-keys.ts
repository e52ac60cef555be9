// Rows of API keys. SQL only; callers pass token hashes.
import { sql } from 'kysely';
import type { PageRequest, Slice } from '../../rules/page.ts';
import { selectSlice } from '../database/pages.ts';
import type { ApiKeyRow, Database } from '../database/schema.ts';

/** Public columns of a key, without its hash. */
export type KnownKeyRow = Omit<ApiKeyRow, 'token_sha256'>;

const KNOWN_COLUMNS = [
  'id',
  'org_id',
  'created_by',
  'name',
  'token_prefix',
  'scopes',
  'via_sso',
  'created_at',
  'expires_at',
  'revoked_at',
  'last_used_at',
] as const satisfies (keyof KnownKeyRow)[];

interface NewApiKey {
  id: string;
  orgId: string;
  createdBy: string;
  name: string;
  tokenSha256: Buffer;
  tokenPrefix: string;
  scopes: string[] | null;
  viaSso: boolean;
  expiresInDays: number | null;
}

export async function insertApiKey(db: Database, key: NewApiKey): Promise<KnownKeyRow> {
  return await db
    .insertInto('api_key')
    .values({
      id: key.id,
      org_id: key.orgId,
      created_by: key.createdBy,
      name: key.name,
      token_sha256: key.tokenSha256,
      token_prefix: key.tokenPrefix,
      scopes: key.scopes,
      via_sso: key.viaSso,
      expires_at: key.expiresInDays === null ? null : sql<Date>`now() + ${key.expiresInDays} * interval '1 day'`,
    })
    .returning(KNOWN_COLUMNS)
    .executeTakeFirstOrThrow();
}

/** Deletes an org's revoked and expired keys except the newest `kept`. */
export async function deleteEndedKeys(db: Database, orgId: string, kept: number): Promise<void> {
  await sql`delete from api_key where id in (
    select id from api_key where org_id = ${orgId} and (revoked_at is not null or expires_at <= now())
    order by created_at desc, id desc offset ${kept})`.execute(db);
}

/** An org's keys, newest first, including expired and revoked ones. */
export async function listApiKeys(db: Database, orgId: string, page: PageRequest | null): Promise<Slice<KnownKeyRow>> {
  const query = db.selectFrom('api_key').select(KNOWN_COLUMNS).where('org_id', '=', orgId);
  return await selectSlice(query, { at: 'created_at', tie: 'id', direction: 'desc' }, page);
}

/**
 * Revokes a key of the org. Exactly one of any number of callers, concurrent or not, gets the row.
 */
export async function revokeApiKey(db: Database, orgId: string, keyId: string): Promise<KnownKeyRow | undefined> {
  return await db
    .updateTable('api_key')
    .set({ revoked_at: sql<Date>`now()` })
    .where('id', '=', keyId)
    .where('org_id', '=', orgId)
    .where('revoked_at', 'is', null)
    .returning(KNOWN_COLUMNS)
    .executeTakeFirst();
}

/** Revokes the keys that a user created, expired ones included. */
export async function revokeApiKeysOfUser(db: Database, userId: string): Promise<KnownKeyRow[]> {
  return await db
    .updateTable('api_key')
    .set({ revoked_at: sql<Date>`now()` })
    .where('created_by', '=', userId)
    .where('revoked_at', 'is', null)
    .returning(KNOWN_COLUMNS)
    .execute();
}

export async function findApiKey(db: Database, orgId: string, keyId: string): Promise<KnownKeyRow | undefined> {
  return await db
    .selectFrom('api_key')
    .select(KNOWN_COLUMNS)
    .where('id', '=', keyId)
    .where('org_id', '=', orgId)
    .executeTakeFirst();
}

/** Records a use of the key. Skips a row that another request is writing. */
export async function touchApiKey(db: Database, keyId: string): Promise<void> {
  await sql`update api_key set last_used_at = now()
    where id = (select id from api_key where id = ${keyId} for no key update skip locked)`.execute(db);
}
