// Description of the service, for clients that adapt to it.
import { z } from 'zod';
import { AGENT_LABELS } from './agents/sessions.ts';
import { agent } from './sandboxes/fields.ts';
import { defineRoute } from './route/route.ts';

export const getService = defineRoute({
  name: 'getService',
  summary: "Describes the service: version, addresses, coding agents and the operator's choices",
  method: 'GET',
  path: '/v1/service',
  auth: ['session', 'api_key', 'agent_token'],
  permission: null,
  request: {},
  response: {
    status: 200,
    body: z.strictObject({
      version: z.string().describe('Version of the service.'),
      publicUrl: z.string().describe('Origin at which browsers reach the service (`BERTH_PUBLIC_URL`).'),
      previewUrl: z.string().describe('Origin whose subdomains are the hosts of previews (`BERTH_PREVIEW_URL`).'),
      agents: z
        .array(z.strictObject({ id: agent, label: z.string() }))
        .describe('Coding agents of sandboxes. The template of a host may lack some.'),
      features: z.strictObject({
        console: z.boolean().describe('The web console is served at `/console`.'),
        payments: z.boolean().describe('Plans can be bought.'),
        openSignUp: z.boolean().describe('Accounts need no invitation.'),
        modelEndpoints: z.array(z.string()).describe('Model providers for which projects can store a key of an agent.'),
      }),
    }),
  },
  errors: [],
  activity: null,
  published: true,
  example: {
    answer: {
      version: '0.1.0',
      publicUrl: 'https://berth.example.com',
      previewUrl: 'https://preview.example.net',
      agents: Object.entries(AGENT_LABELS).map(([id, label]) => ({ id, label })),
      features: { console: true, payments: false, openSignUp: false, modelEndpoints: ['anthropic', 'openai'] },
    },
  },
});
