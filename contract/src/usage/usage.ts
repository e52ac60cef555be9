// How much machine time an org used in its billing period. A machine hour is one hour of one awake
// machine, whatever its size.
import { z } from 'zod';
import { exampleUsage } from '../route/examples.ts';
import { END_USER_ID_CHARACTERS } from '../route/limits.ts';
import { defineRoute } from '../route/route.ts';
import { idText, text, timestamp } from '../route/text.ts';

const amount = z.number().nonnegative();

export const usageAlertStatus = z.enum(['normal', 'warning', 'reached', 'exceeded']).meta({
  id: 'UsageAlertStatus',
  description: '`warning` from 80 % of the cap on, `reached` at the cap, `exceeded` above it. Further ones will come.',
});
export type UsageAlertStatus = z.infer<typeof usageAlertStatus>;

export const usageAlert = z
  .strictObject({
    percentUsed: amount.describe(
      'Of the cap; may be above 100. 0 without a cap. Rounded down to the hundredth, so that 80 and 100 are what they say.',
    ),
    status: usageAlertStatus,
    message: z.string().min(1).describe('For people.'),
  })
  .meta({ id: 'UsageAlert', description: 'How near the use is to its cap.' });
export type UsageAlert = z.infer<typeof usageAlert>;

export const orgUsage = z
  .strictObject({
    includedMachineHours: amount.nullable().describe('In the plan, for a billing period; null: without a limit.'),
    sandboxMachineHourLimit: amount.nullable().describe('The cap in force in this period; null: none.'),
    sandboxMachineHourLimitOverride: amount.nullable().describe('The cap that an org admin set; null: none.'),
    sandboxOverageEnabled: z.boolean().describe('Whether work goes on beyond the cap.'),
    usedMachineHours: amount.describe(
      'Of what was asked for: the org, a project, an end user. What runs is counted until now.',
    ),
    remainingMachineHours: amount.nullable().describe('Until the cap, at least 0; null without a cap.'),
    usageAlert,
    periodStartsAt: timestamp,
    periodEndsAt: timestamp,
    overageMachineHours: amount.describe('Hours of the org beyond what its plan includes.'),
    estimatedOverageUsd: amount
      .nullable()
      .describe(
        "What those cost by the plan; null where the plan has no price for them. An estimate: bills are the payment provider's.",
      ),
  })
  .meta({
    id: 'OrgUsage',
    description:
      "Machine time in the present billing period. With `projectId`, cap, remaining hours and alert are the project's; the period, what the plan includes and the overage are always the org's.",
  });
export type OrgUsage = z.infer<typeof orgUsage>;

export const endUserUsage = z
  .strictObject({
    endUserId: z.string(),
    machineHours: amount,
    estimatedCogsUsd: amount.describe('What the machines cost by the rates of the installation.'),
  })
  .meta({ id: 'EndUserUsage', description: 'Machine time of an end user.' });
export type EndUserUsage = z.infer<typeof endUserUsage>;

const orgParams = z.object({ orgId: idText });

export const getOrgUsage = defineRoute({
  name: 'getOrgUsage',
  summary:
    'Machine hours of the org, or of one of its projects or end users, in the present billing period, against the cap',
  method: 'GET',
  path: '/v1/orgs/{orgId}/usage',
  auth: ['session', 'api_key'],
  permission: 'billing.read',
  request: {
    params: orgParams,
    query: z.object({
      projectId: idText.optional().describe('Only of this project, against its cap.'),
      endUserId: text(1, END_USER_ID_CHARACTERS).optional().describe('Only of this end user.'),
    }),
  },
  response: { status: 200, body: orgUsage },
  errors: ['no_active_plan', 'unknown_project'],
  activity: null,
  published: true,
  example: { answer: exampleUsage },
});

export const getEndUserUsage = defineRoute({
  name: 'getEndUserUsage',
  summary:
    'Machine hours of each end user in the present billing period, most first; what ran for no end user is left out',
  method: 'GET',
  path: '/v1/orgs/{orgId}/usage/end-users',
  auth: ['session', 'api_key'],
  permission: 'billing.read',
  request: { params: orgParams },
  response: {
    status: 200,
    body: z.strictObject({ periodStartsAt: timestamp, periodEndsAt: timestamp, endUsers: z.array(endUserUsage) }),
  },
  errors: ['no_active_plan'],
  activity: null,
  published: true,
});
