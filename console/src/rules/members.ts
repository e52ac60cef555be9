// Changes of memberships: possible now, or the reason why not. The service decides in the end.
import { ROLE_PERMISSIONS, type api, type Permission, type Role } from '@berth/sdk';
import { mayIn } from './access.ts';

export type { Role };

/** Roles, most privileged first. */
export const ROLES = Object.keys(ROLE_PERMISSIONS) as Role[];

type MembershipPossibility =
  | { kind: 'possible' }
  | { kind: 'forbidden'; permission: Permission }
  | { kind: 'last-owner' };

/** Only owners add, change and remove owners. @param to null: no longer a member */
export function permissionToChange(from: string | null, to: string | null): Permission {
  return from === 'owner' || to === 'owner' ? 'org.owners.manage' : 'org.members.manage';
}

type Changeable = Pick<api.Member, 'userId' | 'role'>;

/**
 * Whether the person may change the role of a member, or remove them. Leaving needs no permission.
 * @param members all of the org
 */
export function possibilityToChange(
  member: Changeable,
  members: readonly Changeable[],
  org: Pick<api.Org, 'permissions'>,
  leaves: boolean,
): MembershipPossibility {
  const permission = permissionToChange(member.role, null);
  if (!leaves && !mayIn(org, permission)) return { kind: 'forbidden', permission };
  const owners = members.filter(({ role }) => role === 'owner').length;
  return member.role === 'owner' && owners <= 1 ? { kind: 'last-owner' } : { kind: 'possible' };
}

/** Name of a member; undefined for a former member, or while the members are unknown. */
export function nameOf(members: readonly api.Member[], userId: string): string | undefined {
  const member = members.find((one) => one.userId === userId);
  return member?.displayName ?? member?.email ?? undefined;
}
