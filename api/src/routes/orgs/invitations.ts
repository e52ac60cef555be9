// Wire format of invitations. No view holds a token.
import {
  acceptInvitation,
  createInvitation,
  getInvitation,
  listInvitations,
  revokeInvitation,
  type Invitation,
  type ReceivedInvitation,
} from '@berth/contract/orgs/invitations.ts';
import * as invitations from '../../services/orgs/invitations.ts';
import { bind } from '../../call/bind.ts';
import { viewMember } from './orgs.ts';

export const invitationRoutes = [
  bind(listInvitations, async (context, { params, query }) => {
    const { rows, fields } = await invitations.listInvitations(context, params.orgId, query);
    return { invitations: rows.map(viewInvitation), ...fields };
  }),
  bind(createInvitation, async (context, { actor, params, body }) => ({
    invitation: viewInvitation(await invitations.createInvitation(context, actor, params.orgId, body)),
  })),
  bind(revokeInvitation, async (context, { actor, params }) => ({
    invitation: viewInvitation(await invitations.revokeInvitation(context, actor, params.orgId, params.invitationId)),
  })),
  bind(getInvitation, async (context, { params }) => ({
    invitation: viewReceivedInvitation(await invitations.getInvitation(context, params.token)),
  })),
  bind(acceptInvitation, async (context, { actor, params }) => {
    const { orgId, member } = await invitations.acceptInvitationAs(context, {
      token: params.token,
      userId: actor.userId,
      actor,
    });
    return { orgId, member: viewMember(member) };
  }),
];

function viewInvitation(row: invitations.InvitationWithStatus): Invitation {
  return {
    id: row.id,
    orgId: row.org_id,
    email: row.email,
    role: row.role,
    status: row.status,
    invitedBy: row.invited_by,
    createdAt: row.created_at.toISOString(),
    expiresAt: row.expires_at.toISOString(),
    sentAt: row.sent_at?.toISOString() ?? null,
  };
}

function viewReceivedInvitation(row: invitations.ReceivedInvitationRow): ReceivedInvitation {
  return {
    id: row.id,
    org: { id: row.org_id, name: row.orgName },
    email: row.email,
    role: row.role,
    status: row.status,
    expiresAt: row.expires_at.toISOString(),
  };
}
