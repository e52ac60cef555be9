// Revocation of all credentials that act as a person, when a password reset asks for it.
import type { Actor } from '../../rules/access/access.ts';
import { CodedError } from '../../rules/coded-error.ts';
import { insertActivities, type ActivityActor, type NewActivity } from '../../store/activity/activity.ts';
import { revokeAgentTokensOfUser } from '../../store/access/agent-tokens.ts';
import { revokeApiKeysOfUser } from '../../store/access/api-keys.ts';
import { hasLogin } from '../../store/access/session-tokens.ts';
import type { DatabaseTransaction } from '../../store/database/schema.ts';
import { listOrgsOfUser } from '../../store/people/identity.ts';

/** The holder of a reset link is not signed in. */
const ACTOR: ActivityActor = { kind: 'system', id: null, userId: null };

/**
 * Revokes the API keys that the person created in any org, and the person's agent tokens, with an
 * entry for each in the feeds of their orgs. Public links end with the key that made them, an
 * expired one included (rules/previews/link-creator.ts).
 */
export async function revokeCredentialsOf(trx: DatabaseTransaction, userId: string, reason: string): Promise<void> {
  const keys = await revokeApiKeysOfUser(trx, userId);
  const tokens = await revokeAgentTokensOfUser(trx, userId);
  const orgs = tokens.length === 0 ? [] : await listOrgsOfUser(trx, userId, null);
  const ofKeys = keys.map(({ id, org_id: orgId, name }): NewActivity => ({
    orgId,
    actor: ACTOR,
    kind: 'api_key_revoked',
    subject: { kind: 'api_key', id },
    details: { keyId: id, name, reason },
  }));
  const ofTokens = orgs.flatMap(({ id: orgId }) =>
    tokens.map(({ id, name }): NewActivity => ({
      orgId,
      actor: ACTOR,
      kind: 'agent_token_revoked',
      subject: { kind: 'agent_token', id },
      details: { name, reason },
    })),
  );
  await insertActivities(trx, [...ofKeys, ...ofTokens]);
}

/**
 * Throws `unauthenticated` if the actor's sign-in has ended since the authentication. Under a lock
 * of the user, which a password reset holds, no credential is created after its revocation.
 */
export async function requireStillSignedIn(trx: DatabaseTransaction, actor: Actor): Promise<void> {
  if (actor.kind === 'session' && !(await hasLogin(trx, actor.loginId)))
    throw new CodedError('unauthenticated', 'the sign-in of this access token has ended');
}
