// Authenticates a bearer token; the same statement finds the sandbox or agent session named in the
// path. Knows the kinds of tokens; access.ts decides what the caller may do. Caches nothing: a
// revocation or demotion takes effect with the next request on every replica.
import { agentTokenPermissions } from '@berth/contract/access/agent-tokens.ts';
import { role as roleName, type Role } from '@berth/contract/route/permissions.ts';
import type { AuthKind } from '@berth/contract/route/route.ts';
import type { Actor } from '../../rules/access/access.ts';
import type { SsoTerms } from '../../rules/access/sso.ts';
import { CodedError } from '../../rules/coded-error.ts';
import { touchAgentToken } from '../../store/access/agent-tokens.ts';
import { touchApiKey } from '../../store/access/api-keys.ts';
import type { Found, PresentedAgentToken, PresentedApiKey, PresentedSessionToken } from '../../store/access/callers.ts';
import { touchSignIn } from '../../store/access/sign-ins.ts';
import type { AgentSessionRow } from '../../store/database/schema.ts';
import type { LocatedSandboxRow } from '../../store/sandboxes/sandboxes.ts';
import { tokenKind, tokenSha256 } from './bearer-token.ts';
import type { ServiceContext } from '../context/context.ts';

export type { Actor };

export type AccessContext = Pick<ServiceContext, 'callers' | 'db' | 'log' | 'settings'>;

export interface BearerToken {
  kind: AuthKind;
  /** Only the hash is kept from here on. */
  sha256: Buffer;
}

/**
 * Reads the token of an `Authorization` header. Throws `unauthenticated`, also for a wrong
 * checksum, which thus costs no query.
 */
export function readToken(authorization: string | undefined): BearerToken {
  if (authorization === undefined)
    throw unauthenticated('a bearer token is required: send the header Authorization: Bearer <token>');
  const token = /^Bearer +(\S+) *$/i.exec(authorization)?.[1];
  if (token === undefined) throw unauthenticated('the header Authorization must have the form: Bearer <token>');
  const kind = tokenKind(token);
  if (kind === null) {
    throw unauthenticated(
      'the bearer token is not a token of this service (brt_..., bst_... or bat_...), or is incomplete',
    );
  }
  return { kind, sha256: tokenSha256(token) };
}

/** The credential of a request and the sandbox it names. */
interface Presented {
  bearer: BearerToken;
  /** Id of a sandbox or agent session in the path; null for none. Finding it grants no access. */
  namedId: string | null;
  requestId: string | null;
}

/**
 * The sandbox named in the path, or that of the named agent session, if it exists, and the caller's
 * current role in its org.
 */
export interface NamedSandbox {
  sandbox: LocatedSandboxRow | undefined;
  session: AgentSessionRow | undefined;
  role: Role | null;
  /** The caller's terms in that org; null for a key's, and unless the org requires SSO. */
  sso: SsoTerms | null;
}

/** Finds the holder of a well-formed token. Throws `unauthenticated`. */
export async function authenticate(
  context: AccessContext,
  presented: Presented,
): Promise<{ actor: Actor; named: NamedSandbox }> {
  const { bearer, namedId, requestId } = presented;
  switch (bearer.kind) {
    case 'api_key': {
      const found = await context.callers.findKey(bearer.sha256, namedId);
      return { actor: keyHolder(context, found.credential, requestId), named: namedIn(found) };
    }
    case 'session': {
      const found = await context.callers.findSession(bearer.sha256, namedId);
      return { actor: sessionHolder(context, found.credential, requestId), named: namedIn(found) };
    }
    case 'agent_token': {
      const found = await context.callers.findAgentToken(bearer.sha256, namedId);
      return { actor: agentTokenHolder(context, found.credential, requestId), named: namedIn(found) };
    }
    default:
      return bearer.kind satisfies never;
  }
}

function namedIn({ sandbox, session, roleInOrgOfSandbox, ssoInOrgOfSandbox: sso }: Found<unknown>): NamedSandbox {
  return { sandbox, session, role: roleName.safeParse(roleInOrgOfSandbox).data ?? null, sso };
}

function keyHolder(context: AccessContext, key: PresentedApiKey | undefined, requestId: string | null): Actor {
  if (key === undefined) throw unauthenticated('this API key is unknown');
  if (key.revoked_at !== null) throw unauthenticated(`this API key was revoked at ${key.revoked_at.toISOString()}`);
  if (key.expired) throw unauthenticated(`this API key expired at ${key.expires_at?.toISOString()}`);
  if (key.created_by === null) throw unauthenticated("this API key's creator no longer has an account");
  if (!key.used_lately) recordUse(context, key.id, touchApiKey(context.db, key.id));
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

function sessionHolder(
  context: AccessContext,
  session: PresentedSessionToken | undefined,
  requestId: string | null,
): Actor {
  if (session === undefined) throw unauthenticated('this access token is unknown or revoked');
  if (session.expired)
    throw unauthenticated(`this access token expired at ${session.expires_at.toISOString()}; refresh it`);
  if (!session.used_lately) recordUse(context, session.id, touchSignIn(context.db, session.login_id));
  return {
    kind: 'session',
    id: session.id,
    userId: session.user_id,
    requestId,
    loginId: session.login_id,
    secondsSinceSignIn: session.seconds_since_sign_in,
    viaSso: session.via_sso,
  };
}

function agentTokenHolder(
  context: AccessContext,
  token: PresentedAgentToken | undefined,
  requestId: string | null,
): Actor {
  if (token === undefined) throw unauthenticated('this personal agent token is unknown');
  if (token.revoked_at !== null)
    throw unauthenticated(`this personal agent token was revoked at ${token.revoked_at.toISOString()}`);
  if (token.expired) throw unauthenticated(`this personal agent token expired at ${token.expires_at.toISOString()}`);
  if (!token.used_lately) recordUse(context, token.id, touchAgentToken(context.db, token.id));
  const permissions = agentTokenPermissions({
    access: token.access,
    canApprove: token.can_approve,
    canWake: token.can_wake,
  });
  return {
    kind: 'agent_token',
    id: token.id,
    userId: token.user_id,
    requestId,
    permissions,
    viaSso: token.via_sso,
    revokedOrgs: new Set(token.revoked_orgs),
  };
}

/** Does not delay the response. If it fails, `last_used_at` lags by one request. */
function recordUse(context: AccessContext, credentialId: string, noted: Promise<void>): void {
  noted.catch((error: unknown) =>
    context.log.warn({ err: error, credentialId }, 'could not record the use of a credential'),
  );
}

function unauthenticated(message: string): CodedError {
  return new CodedError('unauthenticated', message);
}
