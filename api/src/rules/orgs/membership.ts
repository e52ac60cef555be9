// Rules of membership changes: required permissions, and the last owner of an org. Pure; services
// supply the facts.
import { ROLE_PERMISSIONS, role as roleName, type Permission, type Role } from '@berth/contract/route/permissions.ts';
import { CodedError } from '../coded-error.ts';

/**
 * Change of one person's role. null: not a member, before (an invitation) or after (removed, left).
 */
interface MembershipChange {
  from: Role | null;
  to: Role | null;
}

/**
 * The permission required to create, change or end a membership. Leaving requires none. Only owners
 * create, change and remove owners.
 */
export function permissionToChange({ from, to }: MembershipChange): Permission {
  return from === 'owner' || to === 'owner' ? 'org.owners.manage' : 'org.members.manage';
}

/** Permissions to create credentials and to admit others who can. */
const OUTLIVING: readonly Permission[] = ['api_keys.manage', 'org.owners.manage'];

/**
 * True for a change that grants a permission that outlives the sign-in: a thief of the sign-in
 * would grant it to another account.
 */
export function needsFreshSignIn({ from, to }: MembershipChange): boolean {
  const has = (role: Role | null, permission: Permission): boolean =>
    role !== null && ROLE_PERMISSIONS[role].has(permission);
  return OUTLIVING.some((permission) => has(to, permission) && !has(from, permission));
}

/** Roles that a holder of this role may invite for; null: not a member. */
export function rolesInvitedBy(inviter: Role | null): Role[] {
  if (inviter === null) return [];
  return roleName.options.filter((to) => ROLE_PERMISSIONS[inviter].has(permissionToChange({ from: null, to })));
}

/**
 * Throws `last_owner` if the change would leave the org without an owner. `owners`: number of
 * owners before the change.
 */
export function requireOwnerLeft({ from, to }: MembershipChange, owners: number): void {
  if (from !== 'owner' || to === 'owner' || owners > 1) return;
  throw new CodedError('last_owner', 'this is the only owner of the org: make another member an owner first');
}
