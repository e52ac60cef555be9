// Changes labels and idle time of a sandbox. Size and egress policy have their own routes.
import { z } from 'zod';
import { exampleSandbox } from '../route/examples.ts';
import { NAME_CHARACTERS } from '../route/limits.ts';
import { defineRoute } from '../route/route.ts';
import { text } from '../route/text.ts';
import { idleMinutes, metadata } from './fields.ts';
import { sandboxAnswer, sandboxParams } from './sandboxes.ts';

const updateBody = z
  .strictObject({
    name: text(1, NAME_CHARACTERS).optional(),
    metadata: metadata.optional().describe('Replaces all previous labels.'),
    idleMinutes: idleMinutes.nullable().optional(),
  })
  .refine((body) => Object.values(body).some((value) => value !== undefined), {
    error: 'must have at least one of name, metadata, idleMinutes',
  })
  .meta({ minProperties: 1, description: 'Absent fields keep their value. At least one field is required.' });
export type UpdateSandboxBody = z.infer<typeof updateBody>;

export const updateSandbox = defineRoute({
  name: 'updateSandbox',
  summary: 'Changes name, labels or idle time of a sandbox, in any status; wakes nothing',
  method: 'PATCH',
  path: '/v1/sandboxes/{sandboxId}',
  auth: ['session', 'api_key'],
  permission: 'sandbox.create',
  request: { params: sandboxParams, body: updateBody },
  response: { status: 200, body: sandboxAnswer },
  errors: ['sandbox_state_conflict'],
  activity: 'sandbox_updated',
  published: true,
  example: {
    body: { metadata: { plan: 'paid' }, idleMinutes: 60 },
    answer: { sandbox: { ...exampleSandbox, metadata: { plan: 'paid' }, idleMinutes: 60 } },
  },
});
