// Egress policies: the destinations that a sandbox may contact. Beyond the spec.
import { z } from 'zod';
import { exampleSandbox } from '../route/examples.ts';
import { defineRoute } from '../route/route.ts';
import { sandbox, sandboxParams } from './sandboxes.ts';
import { egress } from './egress-policy.ts';

export const setEgress = defineRoute({
  name: 'setEgress',
  summary: "Replaces a sandbox's egress policy: at once while it is awake, otherwise at its next wake",
  method: 'PUT',
  path: '/v1/sandboxes/{sandboxId}/egress',
  auth: ['session', 'api_key'],
  permission: 'sandbox.create',
  request: { params: sandboxParams, body: egress },
  response: {
    status: 200,
    body: z.strictObject({
      sandbox,
      enforced: z
        .boolean()
        .describe(
          'Whether the host confirmed the policy. false: the sandbox is not awake, or its host did not respond ' +
            'yet; the service repeats the request every second.',
        ),
    }),
  },
  errors: ['sandbox_state_conflict'],
  activity: 'sandbox_egress_changed',
  published: true,
  example: {
    body: { mode: 'allow', names: ['github.com', '*.npmjs.org'], ports: [443] },
    answer: {
      sandbox: {
        ...exampleSandbox,
        egress: { mode: 'allow', names: ['github.com', '*.npmjs.org'], ranges: [], ports: [443] },
      },
      enforced: true,
    },
  },
});
