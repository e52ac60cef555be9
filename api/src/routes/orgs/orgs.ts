// Wire format of orgs and their members.
import {
  createOrg,
  leaveOrg,
  listMembers,
  removeMember,
  updateMember,
  updateOrg,
  type Member,
} from '@berth/contract/orgs/orgs.ts';
import * as members from '../../services/orgs/members.ts';
import * as orgs from '../../services/orgs/orgs.ts';
import { bind } from '../../call/bind.ts';
import { viewOrg } from '../access/identity.ts';

export const orgRoutes = [
  bind(createOrg, async (context, { actor, body }) => {
    return { org: viewOrg(await orgs.createOrg(context, actor, body)) };
  }),
  bind(updateOrg, async (context, { actor, params, body }) => ({
    org: viewOrg(await orgs.renameOrg(context, actor, params.orgId, body.name)),
  })),
  bind(listMembers, async (context, { params, query }) => {
    const { rows, fields } = await members.listMembers(context, params.orgId, query);
    return { members: rows.map(viewMember), ...fields };
  }),
  bind(updateMember, async (context, { actor, params, body }) => ({
    member: viewMember(await members.updateMember(context, actor, params.orgId, params.userId, body.role)),
  })),
  bind(removeMember, async (context, { actor, params }) => ({
    member: viewMember(await members.removeMember(context, actor, params.orgId, params.userId)),
  })),
  bind(leaveOrg, async (context, { actor, params }) => ({
    member: viewMember(await members.leaveOrg(context, actor, params.orgId)),
  })),
];

export function viewMember(row: members.MemberRow): Member {
  return {
    userId: row.user_id,
    email: row.email === '' ? null : row.email,
    displayName: row.name === '' ? null : row.name,
    role: row.role,
    joinedAt: row.created_at.toISOString(),
  };
}
