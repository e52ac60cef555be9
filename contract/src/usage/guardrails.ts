// Usage guardrails: caps on machine hours, and overage (spec: rules for guardrails).
import { z } from 'zod';
import { MOST_MACHINE_HOURS } from '../billing/plans.ts';
import { defineRoute } from '../route/route.ts';
import { idText } from '../route/text.ts';

const machineHours = z.number().min(0).max(MOST_MACHINE_HOURS);

const usageGuardrails = z
  .strictObject({
    includedMachineHours: z
      .number()
      .nonnegative()
      .nullable()
      .describe('Machine hours that the plan includes per billing period; null: unlimited.'),
    sandboxMachineHourLimit: z.number().nonnegative().nullable().describe('The effective cap; null: none.'),
    sandboxMachineHourLimitOverride: z
      .number()
      .nonnegative()
      .nullable()
      .describe(
        'The configured cap. null: none is configured; the included machine hours are the cap, unless ' +
          'overage is enabled.',
      ),
    sandboxOverageEnabled: z
      .boolean()
      .describe('Whether sandboxes continue beyond the cap; the excess is metered as overage.'),
  })
  .meta({ id: 'UsageGuardrails', description: "The org's cap on machine hours, and its overage setting." });
export type UsageGuardrails = z.infer<typeof usageGuardrails>;

const projectUsageGuardrails = z.strictObject({
  sandboxMachineHourLimit: z
    .number()
    .nonnegative()
    .nullable()
    .describe("The project's cap; null: none. The org's cap applies in addition."),
});
export type ProjectUsageGuardrails = z.infer<typeof projectUsageGuardrails>;

const updateUsageGuardrailsBody = z
  .strictObject({
    sandboxMachineHourLimit: machineHours.nullable().optional(),
    sandboxOverageEnabled: z.boolean().optional(),
  })
  .refine(
    (body) => body.sandboxMachineHourLimit !== undefined || body.sandboxOverageEnabled !== undefined,
    'must have sandboxMachineHourLimit, sandboxOverageEnabled or both',
  )
  .meta({ minProperties: 1, description: 'Absent fields keep their value. At least one field is required.' });
export type UpdateUsageGuardrailsBody = z.infer<typeof updateUsageGuardrailsBody>;

/** null removes the project's cap. */
const updateProjectUsageGuardrailsBody = z.strictObject({ sandboxMachineHourLimit: machineHours.nullable() });
export type UpdateProjectUsageGuardrailsBody = z.infer<typeof updateProjectUsageGuardrailsBody>;

export const updateUsageGuardrails = defineRoute({
  name: 'updateUsageGuardrails',
  summary: "Sets the org's cap on machine hours per billing period, and whether overage is allowed",
  method: 'PATCH',
  path: '/v1/orgs/{orgId}/subscription/usage-guardrails',
  auth: ['session'],
  permission: 'usage_guardrails.manage',
  request: { params: z.object({ orgId: idText }), body: updateUsageGuardrailsBody },
  response: { status: 200, body: z.strictObject({ usageGuardrails }) },
  errors: ['no_active_plan'],
  activity: 'usage_guardrails_updated',
  published: false,
});

export const updateProjectUsageGuardrails = defineRoute({
  name: 'updateProjectUsageGuardrails',
  summary: "Sets a project's cap on machine hours per billing period, within the org's cap",
  method: 'PATCH',
  path: '/v1/orgs/{orgId}/projects/{projectId}/usage-guardrails',
  auth: ['session'],
  permission: 'usage_guardrails.manage',
  request: { params: z.object({ orgId: idText, projectId: idText }), body: updateProjectUsageGuardrailsBody },
  response: { status: 200, body: z.strictObject({ usageGuardrails: projectUsageGuardrails }) },
  errors: [],
  activity: 'usage_guardrails_updated',
  published: false,
});
