// Orgs and their members.
import { z } from 'zod';
import { exampleOrg } from '../route/examples.ts';
import { NAME_CHARACTERS } from '../route/limits.ts';
import { org } from '../access/identity.ts';
import { pageFields, pageQuery } from '../route/page.ts';
import { role } from '../route/permissions.ts';
import { defineRoute } from '../route/route.ts';
import { idText, nameInPath, text, timestamp } from '../route/text.ts';

export const member = z
  .strictObject({
    userId: idText,
    email: z.string().nullable(),
    displayName: z.string().nullable(),
    role,
    joinedAt: timestamp.describe('Start of the membership.'),
  })
  .meta({ id: 'Member', description: 'A member of an org.' });
export type Member = z.infer<typeof member>;

const orgParams = z.object({ orgId: idText });
const memberParams = z.object({ orgId: idText, userId: nameInPath });

export const createOrg = defineRoute({
  name: 'createOrg',
  summary: 'Creates an org with the caller as owner',
  method: 'POST',
  path: '/v1/orgs',
  auth: ['session'],
  permission: null,
  request: { body: z.strictObject({ name: text(1, NAME_CHARACTERS) }) },
  response: { status: 201, body: z.strictObject({ org }) },
  errors: ['org_limit'],
  activity: 'org_created',
  published: false,
});

export const updateOrg = defineRoute({
  name: 'updateOrg',
  summary: 'Renames the org',
  method: 'PATCH',
  path: '/v1/orgs/{orgId}',
  auth: ['session'],
  permission: 'org.update',
  request: { params: orgParams, body: z.strictObject({ name: text(1, NAME_CHARACTERS) }) },
  response: { status: 200, body: z.strictObject({ org }) },
  errors: [],
  activity: 'org_updated',
  published: true,
  example: { body: { name: 'Example' }, answer: { org: exampleOrg } },
});

export const listMembers = defineRoute({
  name: 'listMembers',
  summary: "Lists the org's members, oldest membership first",
  method: 'GET',
  path: '/v1/orgs/{orgId}/members',
  auth: ['session', 'api_key'],
  permission: 'org.read',
  request: { params: orgParams, query: pageQuery },
  response: { status: 200, body: z.strictObject({ members: z.array(member), ...pageFields }) },
  errors: [],
  activity: null,
  published: false,
});

export const updateMember = defineRoute({
  name: 'updateMember',
  summary: "Changes a member's role; adding or changing an owner requires org.owners.manage",
  method: 'PATCH',
  path: '/v1/orgs/{orgId}/members/{userId}',
  auth: ['session'],
  permission: 'org.members.manage',
  request: { params: memberParams, body: z.strictObject({ role }) },
  response: { status: 200, body: z.strictObject({ member }) },
  errors: ['member_not_found', 'last_owner', 'reauthentication_required'],
  activity: 'member_role_changed',
  published: false,
});

export const removeMember = defineRoute({
  name: 'removeMember',
  summary: 'Removes a member; removing an owner requires org.owners.manage',
  method: 'DELETE',
  path: '/v1/orgs/{orgId}/members/{userId}',
  auth: ['session'],
  permission: 'org.members.manage',
  request: { params: memberParams },
  response: { status: 200, body: z.strictObject({ member }) },
  errors: ['member_not_found', 'last_owner'],
  activity: 'member_removed',
  published: false,
});

export const leaveOrg = defineRoute({
  name: 'leaveOrg',
  summary: 'Leaves an org',
  method: 'DELETE',
  path: '/v1/me/orgs/{orgId}',
  auth: ['session'],
  permission: null,
  request: { params: orgParams },
  response: { status: 200, body: z.strictObject({ member }) },
  errors: ['last_owner'],
  activity: 'member_removed',
  published: false,
});
