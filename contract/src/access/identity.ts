// The caller and its orgs.
import { z } from 'zod';
import { exampleIdentity, exampleOrg } from '../route/examples.ts';
import { role } from '../route/permissions.ts';
import { defineRoute } from '../route/route.ts';
import { idText, timestamp } from '../route/text.ts';

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
