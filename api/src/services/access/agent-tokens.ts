// The caller's personal agent tokens: list, create, revoke. A token is valid in every org of its
// holder, so each org's feed records it. rules/access/access.ts decides at each call what a token
// may do.
import type { CreateAgentTokenBody } from '@berth/contract/access/agent-tokens.ts';
import { AGENT_TOKEN_DAYS, AGENT_TOKENS_PER_HOUR, ENDED_CREDENTIALS_KEPT } from '@berth/contract/route/limits.ts';
import type { PageQuery } from '@berth/contract/route/page.ts';
import type { Actor } from '../../rules/access/access.ts';
import { cameBySso, requireSso } from '../../rules/access/sso.ts';
import { CodedError } from '../../rules/coded-error.ts';
import { readInPages, type PageFields } from '../../rules/page.ts';
import { insertActivity } from '../../store/activity/activity.ts';
import { requireShare } from '../../rules/orgs/fair-shares.ts';
import { lockUser } from '../../store/people/accounts.ts';
import {
  countAgentTokens,
  deleteEndedTokens,
  findAgentToken,
  insertAgentToken,
  listAgentTokens as selectAgentTokens,
  revokeAgentToken as writeRevocation,
  type KnownTokenRow,
} from '../../store/access/agent-tokens.ts';
import { listSsoTerms } from '../../store/access/sso.ts';
import { listOrgsOfUser } from '../../store/people/identity.ts';
import { isId, newId } from '../../store/database/ids.ts';
import type { Database } from '../../store/database/schema.ts';
import { requireStillSignedIn } from './revoked-credentials.ts';
import { newToken, tokenPrefix, tokenSha256 } from './bearer-token.ts';
import type { ServiceContext } from '../context/context.ts';

export type { KnownTokenRow };

/** The caller's tokens, newest first, including expired and revoked ones. */
export async function listAgentTokens(
  context: ServiceContext,
  actor: Actor,
  query: PageQuery,
): Promise<{ rows: KnownTokenRow[]; fields: PageFields }> {
  return await readInPages('agentTokens', query, (page) => selectAgentTokens(context.db, actor.userId, page));
}

/**
 * Creates a token for the caller. Only its hash is stored; the token is returned this once. Throws
 * `agent_token_limit`, `sso_required` if an org of the caller requires it, or `rate_limited` after
 * too many within an hour.
 */
export async function createAgentToken(
  context: ServiceContext,
  actor: Actor,
  body: CreateAgentTokenBody,
): Promise<{ agentToken: KnownTokenRow; token: string }> {
  const token = newToken('agent_token');
  const agentToken = await context.db.transaction().execute(async (trx) => {
    await lockUser(trx, actor.userId);
    await requireStillSignedIn(trx, actor);
    // Each request with the token checks the same.
    for (const terms of await listSsoTerms(trx, actor.userId)) requireSso(actor, terms, context.settings);
    const { usable, lastHour } = await countAgentTokens(trx, actor.userId);
    requireShare(context.settings.shares, 'agentTokensPerUser', usable);
    if (lastHour >= AGENT_TOKENS_PER_HOUR) {
      const message = `a user can create at most ${AGENT_TOKENS_PER_HOUR} agent tokens within an hour; try again later`;
      throw new CodedError('rate_limited', message, { retryAfterSeconds: 60 });
    }
    await deleteEndedTokens(trx, actor.userId, ENDED_CREDENTIALS_KEPT);
    const made = await insertAgentToken(trx, {
      id: newId('agentToken'),
      user_id: actor.userId,
      name: body.name,
      token_sha256: tokenSha256(token),
      token_prefix: tokenPrefix(token),
      access: body.access ?? 'read_send',
      can_approve: body.canApprove ?? false,
      can_wake: body.canWake ?? false,
      via_sso: cameBySso(actor),
      expiresInDays: body.expiresInDays ?? AGENT_TOKEN_DAYS.default,
    });
    const { name, access, can_approve: canApprove, can_wake: canWake } = made;
    await recordInOrgs(trx, actor, 'agent_token_created', made, {
      name,
      access,
      canApprove,
      canWake,
      expiresAt: made.expires_at,
    });
    return made;
  });
  return { agentToken, token };
}

/**
 * Revokes a token of the caller: the next request with it is refused on every replica. Revoking a
 * revoked token changes nothing.
 */
export async function revokeAgentToken(context: ServiceContext, actor: Actor, tokenId: string): Promise<KnownTokenRow> {
  return await context.db.transaction().execute(async (trx) => {
    const found = isId('agentToken', tokenId) ? await findAgentToken(trx, tokenId) : undefined;
    if (found === undefined)
      throw new CodedError('agent_token_not_found', 'there is no personal agent token with this id');
    if (found.user_id !== actor.userId)
      throw new CodedError('agent_token_access_denied', 'this personal agent token belongs to another user');
    const revoked = await writeRevocation(trx, tokenId);
    // A concurrent call may have revoked it since the read.
    if (revoked === undefined) return (await findAgentToken(trx, tokenId)) ?? found;
    await recordInOrgs(trx, actor, 'agent_token_revoked', revoked, { name: revoked.name });
    return revoked;
  });
}

/** Adds a row to the feed of each org in which the token was valid; there may be none. */
async function recordInOrgs(
  trx: Database,
  actor: Actor,
  kind: 'agent_token_created' | 'agent_token_revoked',
  token: KnownTokenRow,
  details: Record<string, unknown>,
): Promise<void> {
  for (const { id: orgId } of await listOrgsOfUser(trx, token.user_id, null))
    await insertActivity(trx, { orgId, actor, kind, subject: { kind: 'agent_token', id: token.id }, details });
}
