// API keys: credentials for scripts, CI and platforms. Managed in a session alone (spec:
// Authentication rule 3).
import { z } from 'zod';
import { exampleApiKey } from '../route/examples.ts';
import { EXPIRES_IN_DAYS, NAME_CHARACTERS } from '../route/limits.ts';
import { pageFields, pageQuery } from '../route/page.ts';
import { permission } from '../route/permissions.ts';
import { defineRoute } from '../route/route.ts';
import { idText, text, timestamp } from '../route/text.ts';

export const apiKey = z
  .strictObject({
    id: idText,
    orgId: idText,
    name: z.string(),
    tokenPrefix: z.string().describe('The first characters of the token, to tell keys apart.'),
    scopes: z.array(permission).nullable().describe('null: unscoped. Empty: grants nothing.'),
    createdBy: idText.nullable().describe('The user it acts as; null when that account is gone.'),
    createdAt: timestamp,
    expiresAt: timestamp.nullable().describe('null: never.'),
    revokedAt: timestamp.nullable(),
    lastUsedAt: timestamp.nullable().describe('To the minute; null: never used.'),
  })
  .meta({ id: 'ApiKey', description: 'What is known of an API key; never its token.' });
export type ApiKey = z.infer<typeof apiKey>;

const orgParams = z.object({ orgId: idText });

export const createApiKeyBody = z.strictObject({
  name: text(1, NAME_CHARACTERS),
  expiresInDays: z
    .int()
    .min(EXPIRES_IN_DAYS.min)
    .max(EXPIRES_IN_DAYS.max)
    .nullable()
    .optional()
    .describe('Without a number it does not expire.'),
  scopes: z
    .array(permission)
    .max(permission.options.length)
    .nullable()
    .optional()
    .describe('What it may do, within what its creator may do at the time. null or absent: unscoped. Empty: nothing.'),
});
export type CreateApiKeyBody = z.infer<typeof createApiKeyBody>;

export const listApiKeys = defineRoute({
  name: 'listApiKeys',
  summary: "The org's API keys, newest first, expired and revoked ones too",
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
  summary: 'Makes a key that acts as the caller; its token is in this answer alone',
  method: 'POST',
  path: '/v1/orgs/{orgId}/api-keys',
  auth: ['session'],
  permission: 'api_keys.manage',
  request: { params: orgParams, body: createApiKeyBody },
  response: {
    status: 201,
    body: z.strictObject({ apiKey, token: z.string().describe('The key itself. It is in this answer alone.') }),
  },
  errors: [],
  activity: 'api_key_created',
  published: true,
  example: {
    body: { name: 'ci', expiresInDays: 90, scopes: exampleApiKey.scopes },
    answer: { apiKey: exampleApiKey, token: 'brt_pR5...' },
  },
});

export const revokeApiKey = defineRoute({
  name: 'revokeApiKey',
  summary: 'Revokes a key at once; doing it again changes nothing',
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
