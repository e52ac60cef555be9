// API keys of an org.
import type { api } from '@berth/sdk';
import { berth } from '../session/client.ts';
import { change } from './client.ts';
import { pagedQuery } from './paged.ts';

const PAGE_SIZE = 100;

const keyOf = (orgId: string) => ['orgs', orgId, 'api-keys'] as const;

export const apiKeysQuery = (orgId: string) =>
  pagedQuery(
    keyOf(orgId),
    (page, signal) => berth.raw.listApiKeys({ path: { orgId }, query: { ...page, limit: PAGE_SIZE }, signal }),
    ({ apiKeys }) => apiKeys,
  );

export const createApiKey = (orgId: string, body: api.CreateApiKeyData['body']) =>
  change(berth.raw.createApiKey({ path: { orgId }, body }), keyOf(orgId));

export const revokeApiKey = (orgId: string, keyId: string) =>
  change(berth.raw.revokeApiKey({ path: { orgId, keyId } }), keyOf(orgId));
