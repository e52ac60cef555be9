// The person: its name, and personal tokens for agent sessions.
import type { api } from '@berth/sdk';
import { berth } from '../session/client.ts';
import { change, queries } from './client.ts';
import { meQuery } from './orgs.ts';
import { pagedQuery } from './paged.ts';

export async function renameMe(displayName: string): Promise<void> {
  queries.setQueryData(meQuery.queryKey, await berth.raw.updateMe({ body: { displayName } }));
}

const TOKENS = ['me', 'agent-tokens'] as const;
const PAGE_SIZE = 50;

export const agentTokensQuery = pagedQuery(
  TOKENS,
  (page, signal) => berth.raw.listAgentTokens({ query: { ...page, limit: PAGE_SIZE }, signal }),
  ({ agentTokens }) => agentTokens,
);

export const createAgentToken = (body: api.CreateAgentTokenData['body']) =>
  change(berth.raw.createAgentToken({ body }), TOKENS);

export const revokeAgentToken = (tokenId: string) => change(berth.raw.revokeAgentToken({ path: { tokenId } }), TOKENS);
