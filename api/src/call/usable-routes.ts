// The routes that a caller may use in some org, whatever the org of a call.
import type { Route } from '@berth/contract/route/route.ts';
import { mayUse, requireKind, requirePermission, type Actor } from '../rules/access/access.ts';
import { CodedError } from '../rules/coded-error.ts';
import { usableRoles } from '../services/access/discovery.ts';
import type { CallControl } from './control.ts';

export interface UsableRoutes {
  has(route: Route): boolean;
  /** The refusal of a route that the caller may not use. */
  explain(route: Route): string;
}

export async function usableRoutes({ context }: CallControl, actor: Actor): Promise<UsableRoutes> {
  const roles = await usableRoles(context, actor);
  return {
    has: (route) => mayUse(actor, roles, route),
    explain: (route) => {
      const [role] = roles;
      try {
        requireKind(actor, route);
        if (role === undefined) return 'its person is a member of no org in which it may act';
        if (route.permission !== null) requirePermission(actor, role, route.permission);
      } catch (error) {
        if (error instanceof CodedError) return error.message;
        throw error;
      }
      throw new Error(`${route.name} is allowed`);
    },
  };
}
