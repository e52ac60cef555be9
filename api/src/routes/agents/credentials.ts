// Wire format of model credentials.
import {
  deleteAgentCredentials,
  getAgentCredentials,
  putAgentCredentials,
  type AgentCredentials,
} from '@berth/contract/agents/credentials.ts';
import * as credentials from '../../services/agents/credentials.ts';
import { bind } from '../../call/bind.ts';

export const agentCredentialRoutes = [
  bind(getAgentCredentials, async (context, { params }) => ({
    agentCredentials: view(params.agent, await credentials.getAgentCredentials(context, params)),
  })),
  bind(putAgentCredentials, async (context, { actor, params, body }) => ({
    agentCredentials: view(params.agent, await credentials.putAgentCredentials(context, actor, params, body)),
  })),
  bind(deleteAgentCredentials, async (context, { actor, params }) => {
    await credentials.deleteAgentCredentials(context, actor, params);
    return { agentCredentials: view(params.agent, undefined) };
  }),
];

function view(agent: string, row: credentials.AgentCredentialRow | undefined): AgentCredentials {
  return {
    agent: credentials.requireAgent(agent),
    stored: row !== undefined,
    endpoint: row?.endpoint ?? null,
    updatedAt: row?.updated_at.toISOString() ?? null,
  };
}
