// API keys: credentials for scripts, CI and platforms. Managed with an access token only (spec:
// Authentication rule 3).
import { z } from 'zod';
import { exampleApiKey } from '../route/examples.ts';
import { EXPIRES_IN_DAYS, NAME_CHARACTERS } from '../route/limits.ts';
import { pageFields, pageQuery } from '../route/page.ts';
import { permission } from '../route/permissions.ts';
import { defineRoute } from '../route/route.ts';
import { idText, text, timestamp } from '../route/text.ts';

const apiKey = z
  .strictObject({
    id: idText,
    orgId: idText,
    name: z.string(),
    tokenPrefix: z.string().describe('The first characters of the key, for identification.'),
    scopes: z.array(permission).nullable().describe('null: all permissions. Empty: no permissions.'),
    createdBy: idText.nullable().describe('Id of the user as whom the key acts; null if the account was deleted.'),
    viaSso: z
      .boolean()
      .describe('Whether a sign-in by single sign-on created the key; false also for keys of earlier versions.'),
    createdAt: timestamp,
    expiresAt: timestamp.nullable().describe('null: does not expire.'),
    revokedAt: timestamp.nullable(),
    lastUsedAt: timestamp.nullable().describe('Accurate to one minute; null if never used.'),
  })
  .meta({ id: 'ApiKey', description: 'Metadata of an API key, without the key itself.' });
export type ApiKey = z.infer<typeof apiKey>;

const orgParams = z.object({ orgId: idText });

const createApiKeyBody = z.strictObject({
  name: text(1, NAME_CHARACTERS),
  expiresInDays: z
    .int()
    .min(EXPIRES_IN_DAYS.min)
    .max(EXPIRES_IN_DAYS.max)
    .nullable()
    .optional()
    .describe('Lifetime in days. null or absent: the key does not expire.'),
  scopes: z
    .array(permission)
    .max(permission.options.length)
    .nullable()
    .optional()
    .describe("Permissions of the key, limited to the creator's current role. null or absent: all. Empty: none."),
});
export type CreateApiKeyBody = z.infer<typeof createApiKeyBody>;

export const listApiKeys = defineRoute({
  name: 'listApiKeys',
  summary: "Lists the org's API keys, newest first, including expired and revoked ones",
  method: 'GET',
  path: '/v1/orgs/{orgId}/api-keys',
  auth: ['session'],
  permission: 'api_keys.manage',
  request: { params: orgParams, query: pageQuery },
  response: { status: 200, body: z.strictObject({ apiKeys: z.array(apiKey), ...pageFields }) },
  errors: [],
  activity: null,
  published: true,
  example: { answer: { apiKeys: [exampleApiKey] } },
});

export const createApiKey = defineRoute({
  name: 'createApiKey',
  summary: 'Creates an API key that acts as the caller; only this response contains the key',
  method: 'POST',
  path: '/v1/orgs/{orgId}/api-keys',
  auth: ['session'],
  permission: 'api_keys.manage',
  freshSignIn: true,
  request: { params: orgParams, body: createApiKeyBody },
  response: {
    status: 201,
    body: z.strictObject({ apiKey, token: z.string().describe('The key. Only this response contains it.') }),
  },
  errors: ['api_key_limit'],
  activity: 'api_key_created',
  published: true,
  example: {
    body: { name: 'ci', expiresInDays: 90, scopes: exampleApiKey.scopes },
    answer: { apiKey: exampleApiKey, token: 'brt_pR5...' },
  },
});

export const revokeApiKey = defineRoute({
  name: 'revokeApiKey',
  summary: 'Revokes an API key immediately. Idempotent',
  method: 'DELETE',
  path: '/v1/orgs/{orgId}/api-keys/{keyId}',
  auth: ['session'],
  permission: 'api_keys.manage',
  request: { params: z.object({ orgId: idText, keyId: idText.describe('Id of an API key.') }) },
  response: { status: 200, body: z.strictObject({ apiKey }) },
  errors: [],
  activity: 'api_key_revoked',
  published: true,
  example: { answer: { apiKey: { ...exampleApiKey, revokedAt: '2026-11-22T10:00:00.000Z' } } },
});
