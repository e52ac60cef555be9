// Finds the owner of the resource that a request names and applies the access rule: 404 if it does
// not exist, 403 if it belongs to another org or the permission is missing. Runs on every route
// before the body is read.
import { role as roleName, type Role } from '@berth/contract/route/permissions.ts';
import { NAMED_IN_PATHS, type NamedInPath, type Route } from '@berth/contract/route/route.ts';
import { requireKind, requireMembership, requirePermission, type Actor } from '../../rules/access/access.ts';
import { CodedError } from '../../rules/coded-error.ts';
import { findOrg, findRole } from '../../store/people/identity.ts';
import { isId } from '../../store/database/ids.ts';
import { OWNED_LOCATORS, type OwnedResource } from '../../store/access/owned.ts';
import type { AccessContext, NamedSandbox } from './authentication.ts';

/** Path parameters by name. */
export type PathNames = Readonly<Record<string, string | undefined>>;

/** Id of the sandbox named in the path; null if there is none or the text is not an id. */
export function namedSandboxId({ sandboxId }: PathNames): string | null {
  return sandboxId !== undefined && isId('sandbox', sandboxId) ? sandboxId : null;
}

/**
 * Throws unless the actor may use the route with these path parameters; `named` is the sandbox they
 * name, if found. Returns the org of the decision, if any.
 */
export async function authorize(
  context: AccessContext,
  actor: Actor,
  route: Route,
  params: PathNames,
  named: NamedSandbox,
): Promise<string | undefined> {
  requireKind(actor, route);
  if (params['sandboxId'] !== undefined) {
    if (named.sandbox === undefined) throw notFound('sandboxId');
    requireAccess(actor, route, named.sandbox.org_id, named.role);
    return named.sandbox.org_id;
  }
  const { orgId } = params;
  if (orgId === undefined) return undefined;
  const role = isId('org', orgId) ? await roleIn(context, actor, orgId) : null;
  // A role in the org, or the org's key, proves that the org exists.
  const exists = role !== null || (actor.kind === 'api_key' && actor.orgId === orgId);
  if (!exists && !(isId('org', orgId) && (await findOrg(context.db, orgId)) !== undefined))
    throw new CodedError('org_not_found', 'there is no org with the id in the path');

  requireAccess(actor, route, orgId, role);
  for (const [name, locate] of Object.entries(OWNED_LOCATORS)) {
    const id = params[name];
    if (id !== undefined) requireOwned(name as keyof typeof OWNED_LOCATORS, orgId, await locate(context.db, id));
  }
  return orgId;
}

/**
 * Throws unless the actor has the permission in the org; for permissions beyond the route's own.
 */
export async function requireOrgPermission(
  context: AccessContext,
  actor: Actor,
  orgId: string,
  permission: Parameters<typeof requirePermission>[2],
): Promise<void> {
  requirePermission(actor, requireMembership(actor, orgId, await roleIn(context, actor, orgId)), permission);
}

/** True if the actor has the permission in the org. */
export async function hasOrgPermission(...asked: Parameters<typeof requireOrgPermission>): Promise<boolean> {
  try {
    await requireOrgPermission(...asked);
    return true;
  } catch (error) {
    if (error instanceof CodedError) return false;
    throw error;
  }
}

function requireAccess(actor: Actor, route: Route, orgId: string, roleThere: Role | null): void {
  const role = requireMembership(actor, orgId, roleThere);
  if (route.permission !== null) requirePermission(actor, role, route.permission);
}

async function roleIn(context: AccessContext, actor: Actor, orgId: string): Promise<Role | null> {
  if (actor.kind === 'api_key') return actor.orgId === orgId ? actor.role : null;
  return roleName.safeParse(await findRole(context.db, orgId, actor.userId)).data ?? null;
}

/** Refuses any resource of another org as such, even if the caller is a member of that org too. */
function requireOwned(name: NamedInPath, orgId: string, found: OwnedResource | undefined): void {
  if (found === undefined) throw notFound(name);
  if (found.orgId !== orgId)
    throw new CodedError('org_access_denied', `the ${NOUNS[name]} with the id in the path belongs to another org`);
  if (found.gone) throw notFound(name);
}

const NOUNS: { readonly [name in NamedInPath]: string } = {
  sandboxId: 'sandbox',
  projectId: 'project',
  keyId: 'API key',
  invitationId: 'invitation',
};

function notFound(name: NamedInPath): CodedError {
  return new CodedError(NAMED_IN_PATHS[name], `there is no ${NOUNS[name]} with the id in the path`);
}
