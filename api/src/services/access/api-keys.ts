// API keys: list, create and revoke them as a signed-in person, and mint them on the host.
// rules/access/access.ts decides at each call what a key may do.
import type { MintedKey } from '@berth/protocol/operator-commands.ts';
import { ENDED_CREDENTIALS_KEPT } from '@berth/contract/route/limits.ts';
import type { CreateApiKeyBody } from '@berth/contract/access/api-keys.ts';
import type { PageQuery } from '@berth/contract/route/page.ts';
import type { Actor } from '../../rules/access/access.ts';
import { cameBySso } from '../../rules/access/sso.ts';
import { CodedError } from '../../rules/coded-error.ts';
import { planOrNull } from '../../rules/billing/plan-catalogue.ts';
import { requireShare } from '../../rules/orgs/fair-shares.ts';
import { readInPages, type PageFields } from '../../rules/page.ts';
import { insertActivity, type ActivityActor } from '../../store/activity/activity.ts';
import {
  deleteEndedKeys,
  findApiKey,
  insertApiKey,
  listApiKeys as selectApiKeys,
  revokeApiKey as writeRevocation,
  type KnownKeyRow,
} from '../../store/access/api-keys.ts';
import { findSubscription } from '../../store/billing/subscriptions.ts';
import { countUsableKeys, lockOrg } from '../../store/orgs/fair-shares.ts';
import { lockUser } from '../../store/people/accounts.ts';
import { newId } from '../../store/database/ids.ts';
import type { Database } from '../../store/database/schema.ts';
import { newToken, tokenPrefix, tokenSha256 } from './bearer-token.ts';
import { requireOwnedOrg } from './owned-org.ts';
import { requireStillSignedIn } from './revoked-credentials.ts';
import type { ServiceContext } from '../context/context.ts';

export type { KnownKeyRow };

/** A person with access to the host. */
export const OPERATOR: ActivityActor = { kind: 'operator', id: null, userId: null };

export interface MintRequest {
  orgId: string;
  /** User that the key acts as. */
  createdBy: string;
  name: string;
  scopes: string[] | null;
  expiresInDays: number | null;
  /** The requester's sign-in came from the OIDC provider. */
  viaSso?: boolean;
  /** The requester; default: the operator on the host. */
  actor?: ActivityActor;
}

/** The org's keys, newest first, including expired and revoked ones. */
export async function listApiKeys(
  context: ServiceContext,
  orgId: string,
  query: PageQuery,
): Promise<{ rows: KnownKeyRow[]; fields: PageFields }> {
  return await readInPages('apiKeys', query, (page) => selectApiKeys(context.db, orgId, page));
}

/**
 * Creates a key that acts as the caller. Only its hash is stored; the token is returned this once.
 * Throws `api_key_limit`.
 */
export async function createApiKey(
  context: ServiceContext,
  actor: Actor,
  orgId: string,
  body: CreateApiKeyBody,
): Promise<{ apiKey: KnownKeyRow; token: string }> {
  // Removes duplicate scopes.
  const scopes = body.scopes == null ? null : [...new Set(body.scopes)];
  const request = {
    orgId,
    createdBy: actor.userId,
    name: body.name,
    scopes,
    expiresInDays: body.expiresInDays ?? null,
    viaSso: cameBySso(actor),
    actor,
  };
  return await context.db.transaction().execute(async (trx) => {
    await lockUser(trx, actor.userId);
    await requireStillSignedIn(trx, actor);
    await lockOrg(trx, orgId);
    const plan = planOrNull(context.plans, await findSubscription(trx, orgId));
    requireShare(context.settings.shares, 'apiKeysPerOrg', await countUsableKeys(trx, orgId), plan);
    await deleteEndedKeys(trx, orgId, ENDED_CREDENTIALS_KEPT);
    return await makeKey(trx, request);
  });
}

/**
 * Revokes a key of the org: the next request with it is refused on every replica. Revoking a
 * revoked key changes nothing.
 */
export async function revokeApiKey(
  context: ServiceContext,
  actor: Actor,
  orgId: string,
  keyId: string,
): Promise<KnownKeyRow> {
  return await context.db.transaction().execute(async (trx) => {
    const revoked = await writeRevocation(trx, orgId, keyId);
    if (revoked === undefined) {
      const already = await findApiKey(trx, orgId, keyId);
      if (already === undefined) throw new CodedError('api_key_not_found', 'there is no API key with this id');
      return already;
    }
    await insertActivity(trx, {
      orgId,
      actor,
      kind: 'api_key_revoked',
      subject: { kind: 'api_key', id: keyId },
      details: { keyId, name: revoked.name },
    });
    return revoked;
  });
}

/** Creates a key and its activity row. Call it in a transaction. */
export async function mintApiKey(trx: Database, request: MintRequest): Promise<MintedKey> {
  const { apiKey, token } = await makeKey(trx, request);
  return {
    keyId: apiKey.id,
    orgId: apiKey.org_id,
    name: apiKey.name,
    token,
    expiresAt: apiKey.expires_at?.toISOString() ?? null,
  };
}

async function makeKey(
  trx: Database,
  { actor = OPERATOR, viaSso = false, ...key }: MintRequest,
): Promise<{ apiKey: KnownKeyRow; token: string }> {
  const token = newToken('api_key');
  const apiKey = await insertApiKey(trx, {
    ...key,
    viaSso,
    id: newId('apiKey'),
    tokenSha256: tokenSha256(token),
    tokenPrefix: tokenPrefix(token),
  });
  await insertActivity(trx, {
    orgId: apiKey.org_id,
    actor,
    kind: 'api_key_created',
    subject: { kind: 'api_key', id: apiKey.id },
    details: { keyId: apiKey.id, name: apiKey.name, scopes: apiKey.scopes, createdBy: apiKey.created_by },
  });
  return { apiKey, token };
}

/**
 * Mints a key that acts as the owner of the given org, or of the operator's org. Throws as
 * {@link requireOwnedOrg}.
 */
export async function mintOwnerKey(
  db: Database,
  request: Omit<MintRequest, 'orgId' | 'createdBy'> & { orgId?: string | undefined },
): Promise<MintedKey> {
  return await db.transaction().execute(async (trx) => {
    const org = await requireOwnedOrg(trx, request.orgId);
    const { name, scopes, expiresInDays } = request;
    return await mintApiKey(trx, { orgId: org.orgId, createdBy: org.ownerId, name, scopes, expiresInDays });
  });
}
