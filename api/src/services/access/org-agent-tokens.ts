// Agent tokens of an org's members, for its owners and admins: list, and revoke for the org alone.
// In the holder's other orgs a token stays valid: an org decides about itself only.
import type { PageQuery } from '@berth/contract/route/page.ts';
import type { Actor } from '../../rules/access/access.ts';
import { CodedError } from '../../rules/coded-error.ts';
import { readInPages, type PageFields } from '../../rules/page.ts';
import {
  findTokenOfMember,
  listTokensOfMembers,
  revokeTokenForOrg,
  type MemberTokenRow,
} from '../../store/access/agent-tokens.ts';
import { insertActivity } from '../../store/activity/activity.ts';
import { isId } from '../../store/database/ids.ts';
import type { ServiceContext } from '../context/context.ts';

export type { MemberTokenRow };

/** The members' usable tokens that the org has not revoked, newest first. */
export async function listOrgAgentTokens(
  context: ServiceContext,
  orgId: string,
  query: PageQuery,
): Promise<{ rows: MemberTokenRow[]; fields: PageFields }> {
  return await readInPages('orgAgentTokens', query, (page) => listTokensOfMembers(context.db, orgId, page));
}

/**
 * Revokes a member's token for the org: its next request there is refused on every replica.
 * Repeating it changes nothing. Throws `agent_token_not_found`.
 */
export async function revokeOrgAgentToken(
  context: ServiceContext,
  actor: Actor,
  orgId: string,
  tokenId: string,
): Promise<MemberTokenRow> {
  return await context.db.transaction().execute(async (trx) => {
    const token = isId('agentToken', tokenId) ? await findTokenOfMember(trx, orgId, tokenId) : undefined;
    if (token === undefined)
      throw new CodedError('agent_token_not_found', 'no member of the org has the agent token in the path');
    if (await revokeTokenForOrg(trx, orgId, tokenId)) {
      const { name, user_id: createdBy } = token;
      const subject = { kind: 'agent_token', id: tokenId } as const;
      const details = { name, createdBy, onlyInThisOrg: true };
      await insertActivity(trx, { orgId, actor, kind: 'agent_token_revoked', subject, details });
    }
    return { ...token, refused: true };
  });
}
