// The caller and its orgs.
import { z } from 'zod';
import { exampleIdentity, exampleOrg } from '../route/examples.ts';
import { NAME_CHARACTERS } from '../route/limits.ts';
import { permission, role } from '../route/permissions.ts';
import { defineRoute } from '../route/route.ts';
import { idText, text, timestamp } from '../route/text.ts';

/** spec: Identity. With an API key: its creator. */
const identity = z
  .strictObject({ id: idText, email: z.string().nullable(), displayName: z.string().nullable() })
  .meta({ id: 'Identity', description: 'The calling user; with an API key or a personal agent token, its creator.' });
export type Identity = z.infer<typeof identity>;

export const org = z
  .strictObject({
    id: idText,
    name: z.string(),
    role: role.describe("The caller's role in the org."),
    permissions: z
      .array(permission)
      .describe(
        "The caller's permissions in the org, sorted: those of the role; with an API key or a personal agent " +
          'token, only those that it grants.',
      ),
    createdAt: timestamp,
  })
  .meta({ id: 'Org', description: 'An organization with members and projects.' });
export type Org = z.infer<typeof org>;

export const getMe = defineRoute({
  name: 'getMe',
  summary: 'Returns the calling user; with an API key, its creator',
  method: 'GET',
  path: '/v1/me',
  auth: ['session', 'api_key', 'agent_token'],
  permission: null,
  request: {},
  response: { status: 200, body: identity },
  errors: [],
  activity: null,
  published: true,
  example: { answer: exampleIdentity },
});

export const updateMe = defineRoute({
  name: 'updateMe',
  summary: "Changes the caller's name, which all members of its orgs see",
  method: 'PATCH',
  path: '/v1/me',
  auth: ['session'],
  permission: null,
  request: { body: z.strictObject({ displayName: text(1, NAME_CHARACTERS) }) },
  response: { status: 200, body: identity },
  errors: [],
  activity: 'member_renamed',
  published: false,
});

export const listMyOrgs = defineRoute({
  name: 'listMyOrgs',
  summary: "Lists the orgs of the caller; with an API key, the key's org",
  method: 'GET',
  path: '/v1/me/orgs',
  auth: ['session', 'api_key', 'agent_token'],
  permission: null,
  request: {},
  response: { status: 200, body: z.strictObject({ orgs: z.array(org) }) },
  errors: [],
  activity: null,
  published: true,
  example: { answer: { orgs: [exampleOrg] } },
});
