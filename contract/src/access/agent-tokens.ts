// Personal agent tokens: credentials for agent sessions in all orgs of their creator.
import { z } from 'zod';
import { AGENT_TOKEN_DAYS, NAME_CHARACTERS } from '../route/limits.ts';
import { pageFields, pageQuery } from '../route/page.ts';
import type { Permission } from '../route/permissions.ts';
import { defineRoute } from '../route/route.ts';
import { idText, nameInPath, text, timestamp } from '../route/text.ts';

export const agentTokenAccess = z.enum(['read_only', 'read_send']).meta({
  id: 'AgentTokenAccess',
  description:
    '`read_only`: list agent sessions and read replies. `read_send`: also create and recover agent sessions, ' +
    'send messages and interrupt.',
});

const agentToken = z
  .strictObject({
    id: idText,
    name: z.string(),
    tokenPrefix: z.string().describe('The first characters of the token, for identification.'),
    access: agentTokenAccess,
    canApprove: z.boolean().describe('Whether the token can answer approval requests.'),
    canWake: z.boolean().describe('Whether the token can wake sandboxes.'),
    viaSso: z
      .boolean()
      .describe('Whether a sign-in by single sign-on created the token; false also for tokens of earlier versions.'),
    createdAt: timestamp,
    expiresAt: timestamp,
    revokedAt: timestamp.nullable(),
    lastUsedAt: timestamp.nullable().describe('Accurate to one minute; null if never used.'),
  })
  .meta({ id: 'AgentToken', description: 'Metadata of a personal agent token, without the token itself.' });
export type AgentToken = z.infer<typeof agentToken>;

const orgAgentToken = agentToken
  .omit({ revokedAt: true, lastUsedAt: true })
  .extend({
    userId: idText.describe('Id of the member who created the token.'),
    email: z.string(),
    revoked: z.boolean().describe('Whether the org revoked the token for itself.'),
  })
  .meta({
    id: 'OrgAgentToken',
    description: 'A personal agent token of a member. Its uses are not included: they may be in other orgs.',
  });
export type OrgAgentToken = z.infer<typeof orgAgentToken>;

const createAgentTokenBody = z
  .strictObject({
    name: text(1, NAME_CHARACTERS),
    expiresInDays: z.int().min(AGENT_TOKEN_DAYS.min).max(AGENT_TOKEN_DAYS.max).optional(),
    access: agentTokenAccess.optional(),
    canApprove: z.boolean().optional(),
    canWake: z.boolean().optional(),
  })
  .refine((body) => body.access !== 'read_only' || (body.canApprove !== true && body.canWake !== true), {
    message: 'read_only cannot be combined with canApprove or canWake',
    path: ['access'],
  })
  .describe('`read_only` cannot be combined with `canApprove` or `canWake`.');
export type CreateAgentTokenBody = z.infer<typeof createAgentTokenBody>;

/** Permissions of a token in each org of its creator, limited to those of the creator's role. */
export function agentTokenPermissions(
  token: Pick<AgentToken, 'access' | 'canApprove' | 'canWake'>,
): ReadonlySet<Permission> {
  return new Set<Permission>([
    'agent_session.read',
    ...(token.access === 'read_send' ? (['agent_session.send'] as const) : []),
    ...(token.canApprove ? (['agent_session.approve'] as const) : []),
    ...(token.canWake ? (['sandbox.wake'] as const) : []),
  ]);
}

export const listAgentTokens = defineRoute({
  name: 'listAgentTokens',
  summary: "Lists the caller's personal agent tokens, newest first, including expired and revoked ones",
  method: 'GET',
  path: '/v1/me/agent-tokens',
  auth: ['session'],
  permission: null,
  request: { query: pageQuery },
  response: { status: 200, body: z.strictObject({ agentTokens: z.array(agentToken), ...pageFields }) },
  errors: [],
  activity: null,
  published: false,
});

export const createAgentToken = defineRoute({
  name: 'createAgentToken',
  summary: 'Creates a personal agent token; only this response contains the token',
  method: 'POST',
  path: '/v1/me/agent-tokens',
  auth: ['session'],
  permission: null,
  freshSignIn: true,
  request: { body: createAgentTokenBody },
  response: {
    status: 201,
    body: z.strictObject({ agentToken, token: z.string().describe('The token. Only this response contains it.') }),
  },
  errors: ['agent_token_limit', 'sso_required'],
  activity: 'agent_token_created',
  published: false,
});

export const revokeAgentToken = defineRoute({
  name: 'revokeAgentToken',
  summary: 'Revokes a personal agent token immediately. Idempotent',
  method: 'DELETE',
  path: '/v1/me/agent-tokens/{tokenId}',
  auth: ['session'],
  permission: null,
  request: { params: z.object({ tokenId: nameInPath }) },
  response: { status: 200, body: z.strictObject({ agentToken }) },
  errors: ['agent_token_not_found', 'agent_token_access_denied'],
  activity: 'agent_token_revoked',
  published: false,
});

export const listOrgAgentTokens = defineRoute({
  name: 'listOrgAgentTokens',
  summary: "Lists the usable personal agent tokens of the org's members, newest first",
  method: 'GET',
  path: '/v1/orgs/{orgId}/agent-tokens',
  auth: ['session'],
  permission: 'api_keys.manage',
  request: { params: z.object({ orgId: idText }), query: pageQuery },
  response: { status: 200, body: z.strictObject({ agentTokens: z.array(orgAgentToken), ...pageFields }) },
  errors: [],
  activity: null,
  published: false,
});

export const revokeOrgAgentToken = defineRoute({
  name: 'revokeOrgAgentToken',
  summary: "Revokes a member's personal agent token for this org immediately; other orgs keep it. Idempotent",
  method: 'DELETE',
  path: '/v1/orgs/{orgId}/agent-tokens/{tokenId}',
  auth: ['session'],
  permission: 'api_keys.manage',
  request: { params: z.object({ orgId: idText, tokenId: nameInPath }) },
  response: { status: 200, body: z.strictObject({ agentToken: orgAgentToken }) },
  errors: ['agent_token_not_found'],
  activity: 'agent_token_revoked',
  published: false,
});
