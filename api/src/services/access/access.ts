// Finds the owner of the resource that a request names and applies the access rule: 404 if it does
// not exist, 403 if it belongs to another org or the permission is missing. Runs on every route
// before the body is read.
import { role as roleName, type Role } from '@berth/contract/route/permissions.ts';
import { isOfOperator, NAMED_IN_PATHS, type NamedInPath, type Route } from '@berth/contract/route/route.ts';
import {
  requireGranted,
  requireKind,
  requireMembership,
  requirePermission,
  type Actor,
} from '../../rules/access/access.ts';
import { requireSso, type SsoTerms } from '../../rules/access/sso.ts';
import { CodedError } from '../../rules/coded-error.ts';
import { findMembership } from '../../store/access/sso.ts';
import { findOperatorOrgId, findOrg } from '../../store/people/identity.ts';
import { isId } from '../../store/database/ids.ts';
import { OWNED_LOCATORS, type OwnedResource } from '../../store/access/owned.ts';
import type { AccessContext, NamedSandbox } from './authentication.ts';

/** Path parameters by name. */
export type PathNames = Readonly<Record<string, string | undefined>>;

/**
 * Id of the sandbox or agent session named in the path; null if there is none or the text is not an
 * id.
 */
export function namedId({ sandboxId, sessionId }: PathNames): string | null {
  if (sandboxId !== undefined && isId('sandbox', sandboxId)) return sandboxId;
  return sessionId !== undefined && isId('agentSession', sessionId) ? sessionId : null;
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
  for (const name of ['sandboxId', 'sessionId'] as const) {
    if (params[name] === undefined) continue;
    if (named.sandbox === undefined) throw notFound(name);
    requireAccess(context, actor, route, named.sandbox.org_id, named);
    return named.sandbox.org_id;
  }
  if (isOfOperator(route)) return await authorizeInOperatorOrg(context, actor, route);
  const { orgId } = params;
  if (orgId === undefined) {
    if (route.permission !== null) requireGranted(actor, route.permission);
    return undefined;
  }
  const standing = isId('org', orgId) ? await standingIn(context, actor, orgId) : STRANGER;
  // A role in the org, or the org's key, proves that the org exists.
  const exists = standing.role !== null || (actor.kind === 'api_key' && actor.orgId === orgId);
  if (!exists && !(isId('org', orgId) && (await findOrg(context.db, orgId)) !== undefined))
    throw new CodedError('org_not_found', 'there is no org with this id');

  requireAccess(context, actor, route, orgId, standing);
  for (const [name, locate] of Object.entries(OWNED_LOCATORS)) {
    const id = params[name];
    if (id !== undefined) requireOwned(name as keyof typeof OWNED_LOCATORS, orgId, await locate(context.db, id));
  }
  return orgId;
}

/** Without an operator's org, everybody is a stranger. */
async function authorizeInOperatorOrg(context: AccessContext, actor: Actor, route: Route): Promise<string> {
  const orgId = (await findOperatorOrgId(context.db)) ?? '';
  requireAccess(context, actor, route, orgId, orgId === '' ? STRANGER : await standingIn(context, actor, orgId));
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
  requirePermission(actor, requireStanding(context, actor, orgId, await standingIn(context, actor, orgId)), permission);
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

/** A caller's role in an org, and their terms if it requires SSO. */
interface Standing {
  role: Role | null;
  sso: SsoTerms | null;
}

const STRANGER: Standing = { role: null, sso: null };

function requireAccess(context: AccessContext, actor: Actor, route: Route, orgId: string, standing: Standing): void {
  const role = requireStanding(context, actor, orgId, standing);
  if (route.permission !== null) requirePermission(actor, role, route.permission);
}

/** Strangers do not learn whether the org requires SSO. */
function requireStanding({ settings }: AccessContext, actor: Actor, orgId: string, { role, sso }: Standing): Role {
  const member = requireMembership(actor, orgId, role);
  requireSso(actor, sso, settings);
  return member;
}

async function standingIn(context: AccessContext, actor: Actor, orgId: string): Promise<Standing> {
  if (actor.kind === 'api_key') return actor.orgId === orgId ? { role: actor.role, sso: null } : STRANGER;
  const found = await findMembership(context.db, orgId, actor.userId);
  return found === undefined ? STRANGER : { role: roleName.safeParse(found.role).data ?? null, sso: found.sso };
}

/** Refuses any resource of another org as such, even if the caller is a member of that org too. */
function requireOwned(name: NamedInPath, orgId: string, found: OwnedResource | undefined): void {
  if (found === undefined) throw notFound(name);
  if (found.orgId !== orgId)
    throw new CodedError('org_access_denied', `the ${NOUNS[name]} with this id belongs to another org`);
  if (found.gone) throw notFound(name);
}

const NOUNS: { readonly [name in NamedInPath]: string } = {
  sandboxId: 'sandbox',
  projectId: 'project',
  keyId: 'API key',
  invitationId: 'invitation',
  domainId: 'domain',
  sessionId: 'agent session',
};

function notFound(name: NamedInPath): CodedError {
  return new CodedError(NAMED_IN_PATHS[name], `there is no ${NOUNS[name]} with this id`);
}
