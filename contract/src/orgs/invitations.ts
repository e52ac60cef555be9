// Invitations into an org. Their tokens travel by mail alone: no answer of the API holds one.
import { z } from 'zod';
import { EMAIL_CHARACTERS } from '../route/limits.ts';
import { member } from './orgs.ts';
import { pageFields, pageQuery } from '../route/page.ts';
import { role } from '../route/permissions.ts';
import { defineRoute } from '../route/route.ts';
import { idText, nameInPath, timestamp } from '../route/text.ts';

export const invitationStatus = z
  .enum(['pending', 'accepted', 'revoked', 'expired'])
  .meta({ id: 'InvitationStatus', description: 'Status of an invitation; it can be accepted while it is `pending`.' });

export const invitation = z
  .strictObject({
    id: idText,
    orgId: idText,
    email: z.string(),
    role,
    status: invitationStatus,
    invitedBy: idText.nullable().describe('Who invited; null when that account is gone.'),
    createdAt: timestamp,
    expiresAt: timestamp,
    sentAt: timestamp
      .nullable()
      .describe(
        'When the mail was handed to the mail server, or put into the outbox folder; null while that has not worked.',
      ),
  })
  .meta({ id: 'Invitation', description: 'An invitation into an org.' });
export type Invitation = z.infer<typeof invitation>;

export const receivedInvitation = z
  .strictObject({
    id: idText,
    org: z.strictObject({ id: idText, name: z.string() }),
    email: z.string(),
    role,
    status: invitationStatus,
    expiresAt: timestamp,
  })
  .meta({ id: 'ReceivedInvitation', description: 'What the holder of the mailed token sees before accepting.' });
export type ReceivedInvitation = z.infer<typeof receivedInvitation>;

export const emailAddress = z
  .email('must be an email address')
  .max(EMAIL_CHARACTERS)
  .toLowerCase()
  .describe('Compared in lower case.');

const orgParams = z.object({ orgId: idText });
const tokenParams = z.object({ token: nameInPath });

export const listInvitations = defineRoute({
  name: 'listInvitations',
  summary: "The org's pending invitations, newest first",
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
    'Invites somebody by email; a pending invitation of the same address is replaced. Inviting an owner needs org.owners.manage',
  method: 'POST',
  path: '/v1/orgs/{orgId}/invitations',
  auth: ['session'],
  permission: 'org.members.manage',
  request: { params: orgParams, body: z.strictObject({ email: emailAddress, role: role.optional() }) },
  response: { status: 201, body: z.strictObject({ invitation }) },
  errors: ['already_member'],
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
  summary: 'Looks up an invitation by the token that was mailed',
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
  summary: 'Makes the caller a member; the caller must have verified the address that was invited',
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
