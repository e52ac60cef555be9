// Finds out whose resource a request names and asks the access rule: 404 when it does not exist, 403 when it is another org's or the
// permission is missing. Every route goes through here, before its body is read.
import type { Route } from '@berth/contract/route.ts';
import { requireAccess, type Actor } from '../rules/access.ts';
import { CodedError } from '../rules/coded-error.ts';
import { findOrg } from '../store/identity.ts';
import { isId } from '../store/ids.ts';
import { findSandbox, type LocatedSandboxRow } from '../store/sandboxes.ts';
import type { ServiceContext } from './context.ts';

export interface PathNames {
  orgId?: string | undefined;
  sandboxId?: string | undefined;
}

/** The sandbox that the path names, if there is one. Asks nothing about the caller, so it may be under way while the caller is found out. */
export async function findNamedSandbox(context: ServiceContext, { sandboxId }: PathNames): Promise<LocatedSandboxRow | undefined> {
  return sandboxId !== undefined && isId('sandbox', sandboxId) ? await findSandbox(context.db, sandboxId) : undefined;
}

/** Throws unless the actor may use the route with these path parameters, of which `sandbox` is the one named. */
export async function authorize(
  context: ServiceContext,
  actor: Actor,
  route: Route,
  params: PathNames,
  sandbox: LocatedSandboxRow | undefined,
): Promise<void> {
  if (params.sandboxId !== undefined) {
    if (sandbox === undefined) throw new CodedError('sandbox_not_found', 'there is no sandbox with the id in the path');
    requireAccess(actor, route, sandbox.org_id);
    return;
  }
  if (params.orgId !== undefined) {
    const exists = params.orgId === actor.orgId || (isId('org', params.orgId) && (await findOrg(context.db, params.orgId)) !== undefined);
    if (!exists) throw new CodedError('org_not_found', 'there is no org with the id in the path');
    requireAccess(actor, route, params.orgId);
    return;
  }
  requireAccess(actor, route, null);
}
