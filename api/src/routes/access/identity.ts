// Wire format of the caller's identity.
import { getMe, listMyOrgs, updateMe, type Identity, type Org } from '@berth/contract/access/identity.ts';
import {
  getCaller,
  listCallerOrgs,
  renameCaller,
  type CallerOrg,
  type UserRow,
} from '../../services/access/identity.ts';
import { bind } from '../../call/bind.ts';

export const identityRoutes = [
  bind(getMe, async (context, { actor }) => viewIdentity(await getCaller(context, actor))),
  bind(updateMe, async (context, { actor, body }) =>
    viewIdentity(await renameCaller(context, actor, body.displayName)),
  ),
  bind(listMyOrgs, async (context, { actor }) => ({
    orgs: (await listCallerOrgs(context, actor)).map(viewOrg),
  })),
];

function viewIdentity(user: UserRow): Identity {
  return {
    id: user.id,
    email: user.email === '' ? null : user.email,
    displayName: user.name === '' ? null : user.name,
  };
}

export function viewOrg({ id, name, role, permissions, created_at: createdAt }: CallerOrg): Org {
  return { id, name, role, permissions, createdAt: createdAt.toISOString() };
}
