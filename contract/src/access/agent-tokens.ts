// Personal agent tokens: what drives agent sessions across the orgs of the person who made them,
// and nothing else.
import { z } from 'zod';
import { AGENT_TOKEN_DAYS, NAME_CHARACTERS } from '../route/limits.ts';
import { pageFields, pageQuery } from '../route/page.ts';
import type { Permission } from '../route/permissions.ts';
import { defineRoute } from '../route/route.ts';
import { idText, nameInPath, text, timestamp } from '../route/text.ts';

export const agentTokenAccess = z.enum(['read_only', 'read_send']).meta({
  id: 'AgentTokenAccess',
  description:
    '`read_only`: discovers sessions and reads replies. `read_send`: also creates and recovers sessions, sends messages, interrupts.',
});

export const agentToken = z
  .strictObject({
    id: idText,
    name: z.string(),
    tokenPrefix: z.string().describe('The first characters of the token, to tell tokens apart.'),
    access: agentTokenAccess,
    canApprove: z.boolean().describe('May also answer approvals.'),
    canWake: z.boolean().describe('May also wake sandboxes.'),
    createdAt: timestamp,
    expiresAt: timestamp,
    revokedAt: timestamp.nullable(),
    lastUsedAt: timestamp.nullable().describe('To the minute; null: never used.'),
  })
  .meta({ id: 'AgentToken', description: 'What is known of a personal agent token; never the token.' });
export type AgentToken = z.infer<typeof agentToken>;

export const createAgentTokenBody = z
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

/**
 * What such a token grants in each org of its creator, as far as the creator's role there has it
 * too.
 */
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
  summary: "The caller's personal agent tokens, newest first, expired and revoked ones too",
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
  summary: 'Makes a personal agent token; the token itself is in this answer alone',
  method: 'POST',
  path: '/v1/me/agent-tokens',
  auth: ['session'],
  permission: null,
  request: { body: createAgentTokenBody },
  response: {
    status: 201,
    body: z.strictObject({ agentToken, token: z.string().describe('The token itself. It is in this answer alone.') }),
  },
  errors: [],
  activity: 'agent_token_created',
  published: false,
});

export const revokeAgentToken = defineRoute({
  name: 'revokeAgentToken',
  summary: 'Revokes a personal agent token at once; doing it again changes nothing',
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
