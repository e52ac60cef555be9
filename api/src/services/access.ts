// Finds out whose resource a request names and asks the access rule: 404 when it does not exist, 403 when it is another org's or the
// permission is missing. Every route goes through here, before its body is read.
import type { Route } from '@berth/contract/route.ts';
import { requireAccess, type Actor } from '../rules/access.ts';
import { CodedError } from '../rules/coded-error.ts';
import { findOrg } from '../store/identity.ts';
import { isId } from '../store/ids.ts';
import { findSandbox } from '../store/sandboxes.ts';
import type { SandboxRow } from '../store/schema.ts';
import type { ServiceContext } from './context.ts';

export interface Granted {
  /** The sandbox that the path names, as it was when access was decided. */
  sandbox: SandboxRow | undefined;
}

/** Throws unless the actor may use the route with these path parameters. */
export async function authorize(
  context: ServiceContext,
  actor: Actor,
  route: Route,
  params: { orgId?: string | undefined; sandboxId?: string | undefined },
): Promise<Granted> {
  if (params.sandboxId !== undefined) {
    const sandbox = isId('sandbox', params.sandboxId) ? await findSandbox(context.db, params.sandboxId) : undefined;
    if (sandbox === undefined) throw new CodedError('sandbox_not_found', 'there is no sandbox with the id in the path');
    requireAccess(actor, route, sandbox.org_id);
    return { sandbox };
  }
  if (params.orgId !== undefined) {
    const exists = params.orgId === actor.orgId || (isId('org', params.orgId) && (await findOrg(context.db, params.orgId)) !== undefined);
    if (!exists) throw new CodedError('org_not_found', 'there is no org with the id in the path');
    requireAccess(actor, route, params.orgId);
    return { sandbox: undefined };
  }
  requireAccess(actor, route, null);
  return { sandbox: undefined };
}
