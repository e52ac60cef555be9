// Inserts rows of users, their credentials and mail domains, in any state: for tests that need many
// of them, fast.
import { newToken, tokenPrefix, tokenSha256 } from '../../src/services/access/bearer-token.ts';
import { linkTokenSha256, newLinkToken } from '../../src/services/access/one-time-links.ts';
import { insertMembership, insertUser } from '../../src/store/people/identity.ts';
import { newId } from '../../src/store/database/ids.ts';
import type { Database, OrgDomainRow } from '../../src/store/database/schema.ts';
import type { AgentToken } from '@berth/contract/access/agent-tokens.ts';
import type { Role } from '@berth/contract/route/permissions.ts';

const DAY_MS = 86_400_000;
const inDays = (days: number): Date => new Date(Date.now() + days * DAY_MS);

export interface Person {
  userId: string;
  email: string;
}

/** A user with a verified address and the given role in each org. */
export async function makePerson(db: Database, roles: { readonly [orgId: string]: Role } = {}): Promise<Person> {
  const userId = newId('user');
  const email = `${userId}@example.test`;
  await insertUser(db, { id: userId, name: 'Pat Person', email });
  await db.updateTable('user').set({ emailVerified: true }).where('id', '=', userId).execute();
  for (const [orgId, role] of Object.entries(roles)) await insertMembership(db, { orgId, userId, role });
  return { userId, email };
}

export type Ending = 'live' | 'revoked' | 'expired';

/** An API key with its token. */
export async function makeKeyRow(
  db: Database,
  key: { orgId: string; createdBy: string; scopes?: readonly string[] | null; ending?: Ending },
): Promise<{ id: string; token: string }> {
  const { ending = 'live', scopes = null } = key;
  const token = newToken('api_key');
  const row = {
    id: newId('apiKey'),
    org_id: key.orgId,
    created_by: key.createdBy,
    name: 'made by a test',
    token_sha256: tokenSha256(token),
    token_prefix: tokenPrefix(token),
    scopes: scopes === null ? null : [...scopes],
    created_at: inDays(-3),
    expires_at: ending === 'expired' ? inDays(-1) : null,
    revoked_at: ending === 'revoked' ? inDays(-1) : null,
    last_used_at: null,
  };
  await db.insertInto('api_key').values(row).execute();
  return { id: row.id, token };
}

/** A personal agent token with the token itself. */
export async function makeAgentTokenRow(
  db: Database,
  given: { userId: string; ending?: Ending } & Partial<
    Pick<AgentToken, 'access' | 'canApprove' | 'canWake' | 'viaSso'>
  >,
): Promise<{ id: string; token: string }> {
  const { ending = 'live', access = 'read_send', canApprove = false, canWake = false, viaSso = false } = given;
  const token = newToken('agent_token');
  const row = {
    id: newId('agentToken'),
    user_id: given.userId,
    name: 'made by a test',
    token_sha256: tokenSha256(token),
    token_prefix: tokenPrefix(token),
    access,
    can_approve: canApprove,
    can_wake: canWake,
    via_sso: viaSso,
    created_at: inDays(-3),
    expires_at: inDays(ending === 'expired' ? -1 : 30),
    revoked_at: ending === 'revoked' ? inDays(-1) : null,
    last_used_at: null,
  };
  await db.insertInto('agent_token').values(row).execute();
  return { id: row.id, token };
}

/** A mailed invitation, with its token. */
export async function makeInvitationRow(
  db: Database,
  given: { orgId: string; email: string; ending?: 'pending' | 'accepted' | 'revoked' | 'expired'; role?: Role },
): Promise<{ id: string; token: string }> {
  const { ending = 'pending', role = 'viewer' } = given;
  const token = newLinkToken();
  const row = {
    id: newId('invitation'),
    org_id: given.orgId,
    email: given.email,
    role,
    invited_by: null,
    token_sha256: linkTokenSha256(token),
    created_at: inDays(-8),
    expires_at: inDays(ending === 'expired' ? -1 : 5),
    sent_at: inDays(-8),
    accepted_at: ending === 'accepted' ? inDays(-2) : null,
    accepted_by: null,
    revoked_at: ending === 'revoked' ? inDays(-2) : null,
  };
  await db.insertInto('invitation').values(row).execute();
  return { id: row.id, token };
}

/** A domain that no other test uses. */
export function newDomainName(): string {
  return `${newId('domain').slice(4)}.test`;
}

export async function makeDomainRow(
  db: Database,
  {
    orgId,
    state,
    domain = newDomainName(),
  }: { orgId: string; state: 'claimed' | 'proven' | 'expired'; domain?: string },
): Promise<OrgDomainRow> {
  const now = Date.now();
  return await db
    .insertInto('org_domain')
    .values({
      id: newId('domain'),
      org_id: orgId,
      domain,
      challenge: `berth-domain-verification=${newId('domain')}`,
      expires_at: state === 'proven' ? null : new Date(now + (state === 'expired' ? -1_000 : 3_600_000)),
      verified_at: state === 'proven' ? new Date(now) : null,
    })
    .returningAll()
    .executeTakeFirstOrThrow();
}
