// Who is calling, and in which orgs.
import { z } from 'zod';
import { exampleIdentity, exampleOrg } from '../route/examples.ts';
import { role } from '../route/permissions.ts';
import { defineRoute } from '../route/route.ts';
import { idText, timestamp } from '../route/text.ts';

/** spec: Identity. With an API key: its creator. */
export const identity = z
  .strictObject({ id: idText, email: z.string().nullable(), displayName: z.string().nullable() })
  .meta({ id: 'Identity', description: 'Who calls; with an API key or a personal agent token, who made it.' });
export type Identity = z.infer<typeof identity>;

export const org = z
  .strictObject({ id: idText, name: z.string(), role: role.describe("The caller's role in it."), createdAt: timestamp })
  .meta({ id: 'Org', description: 'An organization, which projects and members belong to.' });
export type Org = z.infer<typeof org>;

export const getMe = defineRoute({
  name: 'getMe',
  summary: 'The caller; with an API key, its creator',
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
  summary: "The orgs the caller belongs to; with an API key, the key's org",
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
