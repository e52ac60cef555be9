// Wire format of API keys. Only a create response holds a token; none holds a hash.
import { createApiKey, listApiKeys, revokeApiKey, type ApiKey } from '@berth/contract/access/api-keys.ts';
import { permission } from '@berth/contract/route/permissions.ts';
import * as apiKeys from '../../services/access/api-keys.ts';
import { bind } from '../../call/bind.ts';

export const apiKeyRoutes = [
  bind(listApiKeys, async (context, { params, query }) => {
    const { rows, fields } = await apiKeys.listApiKeys(context, params.orgId, query);
    return { apiKeys: rows.map(viewApiKey), ...fields };
  }),
  bind(createApiKey, async (context, { actor, params, body }) => {
    const { apiKey, token } = await apiKeys.createApiKey(context, actor, params.orgId, body);
    return { apiKey: viewApiKey(apiKey), token };
  }),
  bind(revokeApiKey, async (context, { actor, params }) => ({
    apiKey: viewApiKey(await apiKeys.revokeApiKey(context, actor, params.orgId, params.keyId)),
  })),
];

function viewApiKey(row: apiKeys.KnownKeyRow): ApiKey {
  return {
    id: row.id,
    orgId: row.org_id,
    name: row.name,
    tokenPrefix: row.token_prefix,
    // Scopes of former versions grant nothing.
    scopes: row.scopes?.flatMap((scope) => permission.safeParse(scope).data ?? []) ?? null,
    createdBy: row.created_by,
    viaSso: row.via_sso,
    createdAt: row.created_at.toISOString(),
    expiresAt: row.expires_at?.toISOString() ?? null,
    revokedAt: row.revoked_at?.toISOString() ?? null,
    lastUsedAt: row.last_used_at?.toISOString() ?? null,
  };
}
