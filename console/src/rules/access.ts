// Permissions of the person in an org, and the roles that have them.
import { ROLE_PERMISSIONS, type api, type Permission, type Role } from '@berth/sdk';

const ROLES = Object.entries(ROLE_PERMISSIONS) as [Role, readonly Permission[]][];

/** True if the service grants the permission to the person in the org. */
export function mayIn({ permissions }: Pick<api.Org, 'permissions'>, permission: Permission): boolean {
  return permissions.includes(permission);
}

/** Roles with the permission, most privileged first. */
export function rolesThatMay(permission: Permission): Role[] {
  return ROLES.filter(([, permissions]) => permissions.includes(permission)).map(([role]) => role);
}
