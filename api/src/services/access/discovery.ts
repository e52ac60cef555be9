// Access of a list over orgs, whose path names none: ids in the query are judged as ids in a path.
import { role as roleName, type Permission, type Role } from '@berth/contract/route/permissions.ts';
import { requireMembership, requirePermission, type Actor } from '../../rules/access/access.ts';
import { requireSso } from '../../rules/access/sso.ts';
import { CodedError } from '../../rules/coded-error.ts';
import { listMembershipsOf } from '../../store/access/sso.ts';
import { OWNED_LOCATORS } from '../../store/access/owned.ts';
import { isId } from '../../store/database/ids.ts';
import { findOrg } from '../../store/people/identity.ts';
import { findSandbox } from '../../store/sandboxes/sandboxes.ts';
import { requireOrgPermission } from './access.ts';
import type { AccessContext } from './authentication.ts';

/** Ids of a query that narrow a list. */
export interface NamedInQuery {
  orgId?: string | undefined;
  projectId?: string | undefined;
  sandboxId?: string | undefined;
}

/**
 * Orgs in which the actor has the permission: those named by the query, or all. Throws the 404 or
 * 403 of a named resource.
 */
export async function readableOrgs(
  context: AccessContext,
  actor: Actor,
  permission: Permission,
  { orgId, projectId, sandboxId }: NamedInQuery,
): Promise<string[]> {
  const named = [
    ...(orgId === undefined ? [] : [await orgNamed(context, orgId)]),
    ...(projectId === undefined ? [] : [await projectNamed(context, projectId)]),
    ...(sandboxId === undefined ? [] : [await sandboxNamed(context, sandboxId)]),
  ];
  for (const id of new Set(named)) await requireOrgPermission(context, actor, id, permission);
  const [first, ...others] = named;
  if (first !== undefined) return others.every((id) => id === first) ? [first] : [];
  return await orgsOf(context, actor, permission);
}

async function orgsOf(context: AccessContext, actor: Actor, permission: Permission): Promise<string[]> {
  if (actor.kind === 'api_key') {
    await requireOrgPermission(context, actor, actor.orgId, permission);
    return [actor.orgId];
  }
  const memberships = await usableMemberships(context, actor);
  return memberships
    .filter(({ role }) => isAllowed(() => requirePermission(actor, role, permission)))
    .map(({ orgId }) => orgId);
}

/** Roles of the actor's person in the orgs where the actor acts. */
export async function usableRoles(context: AccessContext, actor: Actor): Promise<Role[]> {
  if (actor.kind === 'api_key') return actor.role === null ? [] : [actor.role];
  return (await usableMemberships(context, actor)).map(({ role }) => role);
}

/** Memberships of known roles, without those of orgs whose single sign-on the actor lacks. */
async function usableMemberships(
  context: AccessContext,
  actor: Exclude<Actor, { kind: 'api_key' }>,
): Promise<{ orgId: string; role: Role }[]> {
  const memberships = await listMembershipsOf(context.db, actor.userId);
  return memberships.flatMap(({ org_id: orgId, role, sso }) => {
    const known = roleName.safeParse(role).data;
    const acts =
      known !== undefined &&
      isAllowed(() => {
        requireMembership(actor, orgId, known);
        requireSso(actor, sso, context.settings);
      });
    return acts ? [{ orgId, role: known }] : [];
  });
}

function isAllowed(check: () => void): boolean {
  try {
    check();
    return true;
  } catch (error) {
    if (error instanceof CodedError) return false;
    throw error;
  }
}

async function orgNamed({ db }: AccessContext, id: string): Promise<string> {
  if (isId('org', id) && (await findOrg(db, id)) !== undefined) return id;
  throw new CodedError('org_not_found', 'there is no org with the id in query.orgId');
}

async function projectNamed({ db }: AccessContext, id: string): Promise<string> {
  const found = await OWNED_LOCATORS.projectId(db, id);
  if (found !== undefined) return found.orgId;
  throw new CodedError('project_not_found', 'there is no project with the id in query.projectId');
}

async function sandboxNamed({ db }: AccessContext, id: string): Promise<string> {
  const found = isId('sandbox', id) ? await findSandbox(db, id) : undefined;
  if (found !== undefined) return found.org_id;
  throw new CodedError('sandbox_not_found', 'there is no sandbox with the id in query.sandboxId');
}
