// Who may change whose membership, and that an org keeps an owner. Pure; services find out what it
// is asked about.
import { ROLE_PERMISSIONS, role as roleName, type Permission, type Role } from '@berth/contract/route/permissions.ts';
import { CodedError } from '../coded-error.ts';

/**
 * What becomes of one person's membership. null: not a member; before (an invitation) or after
 * (removed, left).
 */
export interface MembershipChange {
  from: Role | null;
  to: Role | null;
}

/**
 * The permission that making, changing or ending a membership needs; to leave needs none. Owners
 * are made, changed and removed by owners alone.
 */
export function permissionToChange({ from, to }: MembershipChange): Permission {
  return from === 'owner' || to === 'owner' ? 'org.owners.manage' : 'org.members.manage';
}

/** The roles that somebody of this role may invite for; null: no member. */
export function rolesInvitedBy(inviter: Role | null): Role[] {
  if (inviter === null) return [];
  return roleName.options.filter((to) => ROLE_PERMISSIONS[inviter].has(permissionToChange({ from: null, to })));
}

/**
 * Throws `last_owner` when the change would leave the org without an owner. `owners`: how many it
 * has before the change.
 */
export function requireOwnerLeft({ from, to }: MembershipChange, owners: number): void {
  if (from !== 'owner' || to === 'owner' || owners > 1) return;
  throw new CodedError('last_owner', 'this is the only owner of the org: make somebody else an owner first');
}
