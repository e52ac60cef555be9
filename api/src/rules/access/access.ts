// Access decisions: the route's token kinds ∩ the token's grants ∩ its holder's current role in the
// org. Pure; services/access/access.ts supplies the facts.
import {
  ADMINISTRATION,
  INSTALLATION,
  ROLE_PERMISSIONS,
  type Permission,
  type Role,
} from '@berth/contract/route/permissions.ts';
import type { AuthKind, Route } from '@berth/contract/route/route.ts';
import { CodedError } from '../coded-error.ts';

interface Caller {
  kind: AuthKind;
  /** Id of the credential: session token, API key or personal agent token. */
  id: string;
  /** The caller; for a key or a personal agent token, its creator. */
  userId: string;
  /** `x-request-id` of the request. */
  requestId: string | null;
}

/** A signed-in person. */
interface SessionActor extends Caller {
  kind: 'session';
  /** The sign-in that issued the session token. */
  loginId: string;
  /** Since the sign-in, or its last confirmation. */
  secondsSinceSignIn: number;
  /** Signed in at the OIDC provider, or on a device approved by such a sign-in. */
  viaSso: boolean;
}

/** The holder of an API key, acting with the creator's rights. */
export interface ApiKeyActor extends Caller {
  kind: 'api_key';
  /** The only org that the key is valid for. */
  orgId: string;
  /** null: unscoped. Empty: grants nothing. */
  scopes: ReadonlySet<string> | null;
  /** The creator's current role in that org; null if no longer a member. */
  role: Role | null;
}

/** The holder of a personal agent token. */
interface AgentTokenActor extends Caller {
  kind: 'agent_token';
  permissions: ReadonlySet<Permission>;
  /** Created by a sign-in at the OIDC provider. */
  viaSso: boolean;
  /** Orgs that revoked the token for themselves. */
  revokedOrgs: ReadonlySet<string>;
}

export type Actor = SessionActor | ApiKeyActor | AgentTokenActor;

const KIND_NAMES: { readonly [kind in AuthKind]: string } = {
  session: 'an access token',
  api_key: 'an API key',
  agent_token: 'a personal agent token',
};

/** Throws unless the route accepts the actor's kind of token. */
export function requireKind(actor: Actor, route: Pick<Route, 'auth'>): void {
  if (route.auth.includes(actor.kind)) return;
  const taken = route.auth.map((kind) => KIND_NAMES[kind]).join(' or ');
  throw new CodedError('auth_kind_not_allowed', `this route does not accept ${KIND_NAMES[actor.kind]}; use ${taken}`);
}

/**
 * Throws unless the actor may act in the org. `role` is the actor's role there; null: not a member.
 */
export function requireMembership(actor: Actor, orgId: string, role: Role | null): Role {
  if (actor.kind === 'api_key' && orgId !== actor.orgId)
    throw new CodedError('org_access_denied', 'this API key belongs to another org');
  if (actor.kind === 'agent_token' && role !== null && actor.revokedOrgs.has(orgId)) {
    const message = 'an owner or admin of the org that owns this resource revoked this personal agent token for it';
    throw new CodedError('org_access_denied', message);
  }
  if (role !== null) return role;
  throw new CodedError(
    'org_access_denied',
    actor.kind === 'session'
      ? 'you are not a member of the org that owns this resource'
      : `the creator of this ${actor.kind === 'api_key' ? 'API key' : 'token'} ` +
          'is not a member of the org that owns this resource',
  );
}

/** Throws unless the actor, with this role in the org, has the permission. */
export function requirePermission(actor: Actor, role: Role, permission: Permission): void {
  const needed = `the permission ${permission} is required`;
  if (!ROLE_PERMISSIONS[role].has(permission)) {
    const whose =
      actor.kind === 'session'
        ? 'your role'
        : `the role of the ${actor.kind === 'api_key' ? "key's" : "token's"} creator`;
    throw new CodedError('permission_denied', `${needed}; ${whose}, ${role}, does not have it`);
  }
  if (actor.kind === 'api_key' && actor.scopes !== null && !actor.scopes.has(permission))
    throw new CodedError('permission_denied', `${needed}; this API key's scopes do not include it`);

  if (actor.kind === 'agent_token' && !actor.permissions.has(permission)) throw notGranted(permission);
}

/** Permissions that the actor, with this role in an org, can use there; sorted. */
export function permissionsOf(actor: Actor, role: Role, { isOperator }: { isOperator: boolean }): Permission[] {
  const granted = (name: Permission): boolean => {
    if (!isOperator && INSTALLATION.includes(name)) return false;
    if (actor.kind === 'session') return true;
    if (actor.kind === 'agent_token') return actor.permissions.has(name);
    return !ADMINISTRATION.includes(name) && (actor.scopes === null || actor.scopes.has(name));
  };
  return [...ROLE_PERMISSIONS[role]].filter(granted).sort();
}

function notGranted(permission: Permission): CodedError {
  const message = `the permission ${permission} is required; this personal agent token does not grant it`;
  return new CodedError('permission_denied', message);
}

/**
 * Throws unless the actor has the permission in some org: for a route whose path names none.
 */
export function requireGranted(actor: Actor, permission: Permission): void {
  if (actor.kind === 'session') return;
  if (actor.kind === 'api_key') requirePermission(actor, requireMembership(actor, actor.orgId, actor.role), permission);
  else if (!actor.permissions.has(permission)) throw notGranted(permission);
}

/**
 * False if no org grants the actor the route: by the kind and grants of the token, and the roles
 * that its person has in the orgs where the token acts.
 */
export function mayUse(
  actor: Actor,
  roles: readonly Role[],
  { auth, permission }: Pick<Route, 'auth' | 'permission'>,
): boolean {
  if (!auth.includes(actor.kind)) return false;
  if (permission === null) return true;
  if (actor.kind === 'agent_token' && !actor.permissions.has(permission)) return false;
  if (actor.kind === 'api_key' && actor.scopes !== null && !actor.scopes.has(permission)) return false;
  return roles.some((role) => ROLE_PERMISSIONS[role].has(permission));
}
