// API keys: minting them on the machine. (Keys are otherwise managed in a signed-in session.)
import { insertActivity, type ActivityActor } from '../store/activity.ts';
import { insertApiKey } from '../store/api-keys.ts';
import { findFirstOrg } from '../store/identity.ts';
import { newId } from '../store/ids.ts';
import type { Database } from '../store/schema.ts';
import { newToken, tokenPrefix, tokenSha256 } from './bearer-token.ts';

/** A person with access to the machine itself. */
export const OPERATOR: ActivityActor = { kind: 'operator', id: null, userId: null };

export interface MintRequest {
  orgId: string;
  /** The user the key acts as. */
  createdBy: string;
  name: string;
  scopes: string[] | null;
  expiresInDays: number | null;
  /** Who asks for it; the operator on the machine when absent. */
  actor?: ActivityActor;
}

export interface MintedKey {
  keyId: string;
  orgId: string;
  name: string;
  /** Shown once; only its hash is stored. */
  token: string;
  expiresAt: string | null;
}

/** Makes a key and its row in the activity feed. Call it in a transaction. */
export async function mintApiKey(trx: Database, request: MintRequest): Promise<MintedKey> {
  const token = newToken('api_key');
  const row = await insertApiKey(trx, {
    ...request,
    id: newId('apiKey'),
    tokenSha256: tokenSha256(token),
    tokenPrefix: tokenPrefix(token),
  });
  await insertActivity(trx, {
    orgId: request.orgId,
    actor: request.actor ?? OPERATOR,
    kind: 'api_key_created',
    subject: { kind: 'api_key', id: row.id },
    details: { keyId: row.id, name: row.name, scopes: row.scopes, createdBy: row.created_by },
  });
  return { keyId: row.id, orgId: row.org_id, name: row.name, token, expiresAt: row.expires_at?.toISOString() ?? null };
}

/** Mints a key that acts as the owner of the given org, or of the installation's first. Throws when there is no such org. */
export async function mintOwnerKey(
  db: Database,
  request: Omit<MintRequest, 'orgId' | 'createdBy'> & { orgId?: string | undefined },
): Promise<MintedKey> {
  return await db.transaction().execute(async (trx) => {
    const org = await findFirstOrg(trx, request.orgId);
    if (org === undefined) {
      throw new Error(
        request.orgId === undefined ? 'there is no org yet: start the service once' : `there is no org ${request.orgId} with an owner`,
      );
    }
    const { name, scopes, expiresInDays } = request;
    return await mintApiKey(trx, { orgId: org.orgId, createdBy: org.ownerId, name, scopes, expiresInDays });
  });
}
