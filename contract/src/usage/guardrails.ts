// The caps on machine hours that org admins set, and whether work goes on beyond what the plan
// includes (spec: rules for guardrails).
import { z } from 'zod';
import { MOST_MACHINE_HOURS } from '../billing/plans.ts';
import { defineRoute } from '../route/route.ts';
import { idText } from '../route/text.ts';

const machineHours = z.number().min(0).max(MOST_MACHINE_HOURS);

export const usageGuardrails = z
  .strictObject({
    includedMachineHours: z
      .number()
      .nonnegative()
      .nullable()
      .describe('What the plan includes in a billing period; null: without a limit.'),
    sandboxMachineHourLimit: z.number().nonnegative().nullable().describe('The cap in force; null: none.'),
    sandboxMachineHourLimitOverride: z
      .number()
      .nonnegative()
      .nullable()
      .describe('What was set; null: nothing, so that what the plan includes is the cap unless overage is on.'),
    sandboxOverageEnabled: z.boolean().describe('Work goes on beyond the cap and is counted.'),
  })
  .meta({ id: 'UsageGuardrails', description: "The org's cap on machine hours, and whether work goes on beyond it." });
export type UsageGuardrails = z.infer<typeof usageGuardrails>;

export const projectUsageGuardrails = z.strictObject({
  sandboxMachineHourLimit: z
    .number()
    .nonnegative()
    .nullable()
    .describe("The project's own cap; null: none. It is enforced inside the org's, also where that is lower."),
});
export type ProjectUsageGuardrails = z.infer<typeof projectUsageGuardrails>;

export const updateUsageGuardrailsBody = z
  .strictObject({
    sandboxMachineHourLimit: machineHours.nullable().optional(),
    sandboxOverageEnabled: z.boolean().optional(),
  })
  .refine(
    (body) => body.sandboxMachineHourLimit !== undefined || body.sandboxOverageEnabled !== undefined,
    'must have sandboxMachineHourLimit, sandboxOverageEnabled or both',
  )
  .meta({ minProperties: 1, description: 'An absent field stays as it is. At least one of the two is needed.' });
export type UpdateUsageGuardrailsBody = z.infer<typeof updateUsageGuardrailsBody>;

/** null removes the project's cap. */
export const updateProjectUsageGuardrailsBody = z.strictObject({ sandboxMachineHourLimit: machineHours.nullable() });
export type UpdateProjectUsageGuardrailsBody = z.infer<typeof updateProjectUsageGuardrailsBody>;

export const updateUsageGuardrails = defineRoute({
  name: 'updateUsageGuardrails',
  summary: "Sets the org's cap on machine hours a billing period, and whether work goes on beyond it",
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
  summary: "Sets a project's own cap on machine hours a billing period, inside the org's",
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
