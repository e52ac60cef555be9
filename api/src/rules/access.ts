// The one rule of who may call what: the route's kinds of tokens ∩ the token's scopes ∩ its creator's present role in the org.
// Pure; services/access.ts finds out what it is asked about.
import { ROLE_PERMISSIONS, type Permission, type Role } from '@berth/contract/permissions.ts';
import type { AuthKind, Route } from '@berth/contract/route.ts';
import { CodedError } from './coded-error.ts';

/** Who calls: the holder of an API key, acting as the key's creator. */
export interface Actor {
  kind: Extract<AuthKind, 'api_key'>;
  /** The key's id. */
  id: string;
  /** The key's creator. */
  userId: string;
  /** The only org the key is good for. */
  orgId: string;
  /** null: unscoped. Empty: grants nothing. */
  scopes: ReadonlySet<string> | null;
  /** The creator's role in that org now; null when no longer a member. */
  role: Role | null;
}

/** Throws unless the actor may use the route on something of the given org; `orgId` null: the route concerns the caller alone. */
export function requireAccess(actor: Actor, route: Pick<Route, 'auth' | 'permission'>, orgId: string | null): void {
  if (!route.auth.includes(actor.kind)) {
    throw new CodedError('auth_kind_not_allowed', `this route does not take an API key; it takes: ${route.auth.join(', ')}`);
  }
  if (orgId === null) return;
  if (orgId !== actor.orgId) {
    throw new CodedError('org_access_denied', 'this API key belongs to another org');
  }
  if (actor.role === null) {
    throw new CodedError('org_access_denied', "this API key's creator is no longer a member of the org");
  }
  if (route.permission !== null) requirePermission(actor, actor.role, route.permission);
}

function requirePermission(actor: Actor, role: Role, permission: Permission): void {
  if (!ROLE_PERMISSIONS[role].has(permission)) {
    throw new CodedError(
      'permission_denied',
      `the permission ${permission} is needed; the role ${role} of the key's creator does not have it`,
    );
  }
  if (actor.scopes !== null && !actor.scopes.has(permission)) {
    throw new CodedError('permission_denied', `the permission ${permission} is needed; this API key's scopes do not include it`);
  }
}
