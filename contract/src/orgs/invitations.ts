// Invitations to an org. Their tokens are sent by mail only: no response of the API contains one.
import { z } from 'zod';
import { EMAIL_CHARACTERS } from '../route/limits.ts';
import { member } from './orgs.ts';
import { pageFields, pageQuery } from '../route/page.ts';
import { role } from '../route/permissions.ts';
import { defineRoute } from '../route/route.ts';
import { idText, nameInPath, timestamp } from '../route/text.ts';

const invitationStatus = z
  .enum(['pending', 'accepted', 'revoked', 'expired'])
  .meta({ id: 'InvitationStatus', description: 'Status of an invitation. Only a `pending` one can be accepted.' });

const invitation = z
  .strictObject({
    id: idText,
    orgId: idText,
    email: z.string(),
    role,
    status: invitationStatus,
    invitedBy: idText.nullable().describe('Id of the user who sent the invitation; null if the account was deleted.'),
    createdAt: timestamp,
    expiresAt: timestamp,
    sentAt: timestamp
      .nullable()
      .describe(
        'Time at which the mail server accepted the mail, or it was written to the outbox folder; null until then.',
      ),
  })
  .meta({ id: 'Invitation', description: 'An invitation to an org.' });
export type Invitation = z.infer<typeof invitation>;

const receivedInvitation = z
  .strictObject({
    id: idText,
    org: z.strictObject({ id: idText, name: z.string() }),
    email: z.string(),
    role,
    status: invitationStatus,
    expiresAt: timestamp,
  })
  .meta({ id: 'ReceivedInvitation', description: 'An invitation as shown to the holder of its mailed token.' });
export type ReceivedInvitation = z.infer<typeof receivedInvitation>;

const emailAddress = z
  .email('must be an email address')
  .max(EMAIL_CHARACTERS)
  .toLowerCase()
  .describe('Email address; converted to lower case.');

const orgParams = z.object({ orgId: idText });
const tokenParams = z.object({ token: nameInPath });

export const listInvitations = defineRoute({
  name: 'listInvitations',
  summary: "Lists the org's pending invitations, newest first",
  method: 'GET',
  path: '/v1/orgs/{orgId}/invitations',
  auth: ['session'],
  permission: 'org.members.manage',
  request: { params: orgParams, query: pageQuery },
  response: { status: 200, body: z.strictObject({ invitations: z.array(invitation), ...pageFields }) },
  errors: [],
  activity: null,
  published: false,
});

export const createInvitation = defineRoute({
  name: 'createInvitation',
  summary:
    'Invites a user by email; replaces a pending invitation of the same address. Inviting an owner requires ' +
    'org.owners.manage',
  method: 'POST',
  path: '/v1/orgs/{orgId}/invitations',
  auth: ['session'],
  permission: 'org.members.manage',
  request: { params: orgParams, body: z.strictObject({ email: emailAddress, role: role.optional() }) },
  response: { status: 201, body: z.strictObject({ invitation }) },
  errors: ['already_member', 'reauthentication_required'],
  activity: 'invitation_created',
  published: false,
});

export const revokeInvitation = defineRoute({
  name: 'revokeInvitation',
  summary: 'Revokes a pending invitation',
  method: 'DELETE',
  path: '/v1/orgs/{orgId}/invitations/{invitationId}',
  auth: ['session'],
  permission: 'org.members.manage',
  request: { params: z.object({ orgId: idText, invitationId: idText }) },
  response: { status: 200, body: z.strictObject({ invitation }) },
  errors: ['invitation_not_pending'],
  activity: 'invitation_revoked',
  published: false,
});

export const getInvitation = defineRoute({
  name: 'getInvitation',
  summary: 'Returns an invitation by its mailed token',
  method: 'GET',
  path: '/v1/invitations/{token}',
  auth: ['session'],
  permission: null,
  request: { params: tokenParams },
  response: { status: 200, body: z.strictObject({ invitation: receivedInvitation }) },
  errors: ['invitation_not_found'],
  activity: null,
  published: false,
});

export const acceptInvitation = defineRoute({
  name: 'acceptInvitation',
  summary: 'Accepts an invitation; the caller must have verified the invited address',
  method: 'POST',
  path: '/v1/invitations/{token}/accept',
  auth: ['session'],
  permission: null,
  request: { params: tokenParams },
  response: { status: 200, body: z.strictObject({ member, orgId: idText }) },
  errors: [
    'invitation_not_found',
    'invitation_not_pending',
    'invitation_for_another',
    'email_not_verified',
    'already_member',
  ],
  activity: 'invitation_accepted',
  published: false,
});
