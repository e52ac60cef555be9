// From a bearer token to who calls. Knows the kinds of tokens; what the caller may do is decided in access.ts. Nothing is cached: a credential
// that was revoked, or whose holder was demoted, is refused by the very next request on every replica.
import { agentTokenPermissions } from '@berth/contract/agent-tokens.ts';
import { role as roleName } from '@berth/contract/permissions.ts';
import type { AuthKind } from '@berth/contract/route.ts';
import type { Actor } from '../rules/access.ts';
import { CodedError } from '../rules/coded-error.ts';
import { findAgentTokenByHash, touchAgentToken } from '../store/agent-tokens.ts';
import { findApiKeyByHash, touchApiKey } from '../store/api-keys.ts';
import { findSessionTokenByHash } from '../store/session-tokens.ts';
import { tokenKind, tokenSha256 } from './bearer-token.ts';
import type { ServiceContext } from './context.ts';

export type { Actor };

export interface BearerToken {
  kind: AuthKind;
  token: string;
}

/** The token of an `Authorization` header. Throws `unauthenticated`, also when its checksum is wrong: such a token costs no query. */
export function readToken(authorization: string | undefined): BearerToken {
  if (authorization === undefined) throw unauthenticated('a bearer token is needed: send the header Authorization: Bearer <token>');
  const token = /^Bearer +(\S+) *$/i.exec(authorization)?.[1];
  if (token === undefined) throw unauthenticated('the header Authorization must have the form: Bearer <token>');
  const kind = tokenKind(token);
  if (kind === null)
    throw unauthenticated('the bearer token is none of this service (brt_..., bst_... or bat_...), or was not copied whole');
  return { kind, token };
}

/** Who holds a token of the right form. Throws `unauthenticated`. */
export async function authenticate(context: ServiceContext, bearer: BearerToken, requestId: string | null): Promise<Actor> {
  const hash = tokenSha256(bearer.token);
  switch (bearer.kind) {
    case 'api_key':
      return await authenticateKey(context, hash, requestId);
    case 'session':
      return await authenticateSession(context, hash, requestId);
    case 'agent_token':
      return await authenticateAgentToken(context, hash, requestId);
    default:
      return bearer.kind satisfies never;
  }
}

async function authenticateKey(context: ServiceContext, hash: Buffer, requestId: string | null): Promise<Actor> {
  const key = await findApiKeyByHash(context.db, hash);
  if (key === undefined) throw unauthenticated('this API key is unknown');
  if (key.revoked_at !== null) throw unauthenticated(`this API key was revoked at ${key.revoked_at.toISOString()}`);
  if (key.expired) throw unauthenticated(`this API key expired at ${key.expires_at?.toISOString()}`);
  if (key.created_by === null) throw unauthenticated("this API key's creator no longer has an account");
  if (!key.used_lately) noteUse(context, key.id, touchApiKey(context.db, key.id));
  return {
    kind: 'api_key',
    id: key.id,
    userId: key.created_by,
    requestId,
    orgId: key.org_id,
    scopes: key.scopes === null ? null : new Set(key.scopes),
    role: roleName.safeParse(key.role).data ?? null,
  };
}

async function authenticateSession(context: ServiceContext, hash: Buffer, requestId: string | null): Promise<Actor> {
  const session = await findSessionTokenByHash(context.db, hash);
  if (session === undefined) throw unauthenticated('this session token is unknown, or was signed out');
  if (session.expired) throw unauthenticated(`this session token expired at ${session.expires_at.toISOString()}; refresh it`);
  return { kind: 'session', id: session.id, userId: session.user_id, requestId, loginId: session.login_id };
}

async function authenticateAgentToken(context: ServiceContext, hash: Buffer, requestId: string | null): Promise<Actor> {
  const token = await findAgentTokenByHash(context.db, hash);
  if (token === undefined) throw unauthenticated('this personal agent token is unknown');
  if (token.revoked_at !== null) throw unauthenticated(`this personal agent token was revoked at ${token.revoked_at.toISOString()}`);
  if (token.expired) throw unauthenticated(`this personal agent token expired at ${token.expires_at.toISOString()}`);
  if (!token.used_lately) noteUse(context, token.id, touchAgentToken(context.db, token.id));
  const permissions = agentTokenPermissions({ access: token.access, canApprove: token.can_approve, canWake: token.can_wake });
  return { kind: 'agent_token', id: token.id, userId: token.user_id, requestId, permissions };
}

/** Off the answer's path: when it fails, the credential's `last_used_at` is late by one request. */
function noteUse(context: ServiceContext, credentialId: string, noted: Promise<void>): void {
  noted.catch((error: unknown) => context.log.warn({ err: error, credentialId }, 'could not note the use of a credential'));
}

function unauthenticated(message: string): CodedError {
  return new CodedError('unauthenticated', message);
}
