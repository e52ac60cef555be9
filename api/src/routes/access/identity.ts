// Wire format of the caller's identity.
import { getMe, listMyOrgs, type Identity, type Org } from '@berth/contract/access/identity.ts';
import { role } from '@berth/contract/route/permissions.ts';
import { getCaller, listCallerOrgs, type MemberOrgRow, type UserRow } from '../../services/access/identity.ts';
import { bind } from '../../call/bind.ts';

export const identityRoutes = [
  bind(getMe, async (context, { actor }) => viewIdentity(await getCaller(context, actor))),
  bind(listMyOrgs, async (context, { actor }) => ({ orgs: (await listCallerOrgs(context, actor)).map(viewOrg) })),
];

function viewIdentity(user: UserRow): Identity {
  return {
    id: user.id,
    email: user.email === '' ? null : user.email,
    displayName: user.name === '' ? null : user.name,
  };
}

function viewOrg(org: MemberOrgRow): Org {
  return { id: org.id, name: org.name, role: role.parse(org.role), createdAt: org.created_at.toISOString() };
}
