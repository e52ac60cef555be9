// Wire format of personal agent tokens. Only a create response holds a token; none holds a hash.
import {
  createAgentToken,
  listAgentTokens,
  listOrgAgentTokens,
  revokeAgentToken,
  revokeOrgAgentToken,
  type AgentToken,
  type OrgAgentToken,
} from '@berth/contract/access/agent-tokens.ts';
import * as agentTokens from '../../services/access/agent-tokens.ts';
import * as orgAgentTokens from '../../services/access/org-agent-tokens.ts';
import { bind } from '../../call/bind.ts';

export const agentTokenRoutes = [
  bind(listAgentTokens, async (context, { actor, query }) => {
    const { rows, fields } = await agentTokens.listAgentTokens(context, actor, query);
    return { agentTokens: rows.map(viewAgentToken), ...fields };
  }),
  bind(createAgentToken, async (context, { actor, body }) => {
    const { agentToken, token } = await agentTokens.createAgentToken(context, actor, body);
    return { agentToken: viewAgentToken(agentToken), token };
  }),
  bind(revokeAgentToken, async (context, { actor, params }) => ({
    agentToken: viewAgentToken(await agentTokens.revokeAgentToken(context, actor, params.tokenId)),
  })),
  bind(listOrgAgentTokens, async (context, { params, query }) => {
    const { rows, fields } = await orgAgentTokens.listOrgAgentTokens(context, params.orgId, query);
    return { agentTokens: rows.map(viewOrgAgentToken), ...fields };
  }),
  bind(revokeOrgAgentToken, async (context, { actor, params }) => ({
    agentToken: viewOrgAgentToken(
      await orgAgentTokens.revokeOrgAgentToken(context, actor, params.orgId, params.tokenId),
    ),
  })),
];

function viewOrgAgentToken(row: orgAgentTokens.MemberTokenRow): OrgAgentToken {
  const { revokedAt: _, lastUsedAt: __, ...token } = viewAgentToken(row);
  return { ...token, userId: row.user_id, email: row.email, revoked: row.refused };
}

function viewAgentToken(row: agentTokens.KnownTokenRow): AgentToken {
  return {
    id: row.id,
    name: row.name,
    tokenPrefix: row.token_prefix,
    access: row.access,
    canApprove: row.can_approve,
    canWake: row.can_wake,
    viaSso: row.via_sso,
    createdAt: row.created_at.toISOString(),
    expiresAt: row.expires_at.toISOString(),
    revokedAt: row.revoked_at?.toISOString() ?? null,
    lastUsedAt: row.last_used_at?.toISOString() ?? null,
  };
}
