// Model credentials of a project: one API key per agent, used by the hosts' model gateways. The key
// never enters a sandbox.
import { z } from 'zod';
import { defineRoute } from '../route/route.ts';
import { idText, timestamp } from '../route/text.ts';
import { agent } from '../sandboxes/fields.ts';
import { MODEL_KEY_CHARACTERS } from '../route/limits.ts';

/** Provider whose protocol an agent speaks. */
export const AGENT_PROVIDERS = { agent_one: 'openai', agent_two: 'anthropic' } as const;
export type ModelProvider = (typeof AGENT_PROVIDERS)[keyof typeof AGENT_PROVIDERS];

const agentCredentials = z
  .strictObject({
    agent,
    stored: z.boolean().describe('Whether a key is stored; it is never returned.'),
    endpoint: z.string().nullable().describe('Base URL of the model provider; null: no key is stored.'),
    updatedAt: timestamp.nullable(),
  })
  .meta({ id: 'AgentCredentials', description: "A project's credentials at the model provider of an agent." });
export type AgentCredentials = z.infer<typeof agentCredentials>;

const putBody = z.strictObject({
  apiKey: z
    .string()
    .min(1)
    .max(MODEL_KEY_CHARACTERS)
    .regex(/^[\x21-\x7e]*$/, 'must be printable ASCII characters without spaces')
    .meta({ writeOnly: true, description: 'Key of the model provider. Encrypted at rest, never returned.' }),
  endpoint: z
    .string()
    .max(500)
    .optional()
    .describe('Base URL of the provider, from the list of the operator; default: the first of the list.'),
});
export type PutAgentCredentials = z.infer<typeof putBody>;

/** Unknown agents are 404, also over-long ones. */
const params = z.object({ orgId: idText, projectId: idText, agent: z.string() });
const answer = { status: 200, body: z.strictObject({ agentCredentials }) } as const;

export const getAgentCredentials = defineRoute({
  name: 'getAgentCredentials',
  summary: 'Reports whether the project has a model key for an agent; the key is never returned',
  method: 'GET',
  path: '/v1/orgs/{orgId}/projects/{projectId}/agent-credentials/{agent}',
  auth: ['session'],
  permission: 'agent_credentials.manage',
  request: { params },
  response: answer,
  errors: ['agent_not_found'],
  activity: null,
  published: false,
});

export const putAgentCredentials = defineRoute({
  name: 'putAgentCredentials',
  summary: "Stores the project's model key for an agent; replaces an earlier one",
  method: 'PUT',
  path: '/v1/orgs/{orgId}/projects/{projectId}/agent-credentials/{agent}',
  auth: ['session'],
  permission: 'agent_credentials.manage',
  request: { params, body: putBody },
  response: answer,
  errors: ['agent_not_found'],
  activity: 'agent_credentials_updated',
  published: false,
});

export const deleteAgentCredentials = defineRoute({
  name: 'deleteAgentCredentials',
  summary: "Deletes the project's model key for an agent; deleting none succeeds",
  method: 'DELETE',
  path: '/v1/orgs/{orgId}/projects/{projectId}/agent-credentials/{agent}',
  auth: ['session'],
  permission: 'agent_credentials.manage',
  request: { params },
  response: answer,
  errors: ['agent_not_found'],
  activity: 'agent_credentials_removed',
  published: false,
});
