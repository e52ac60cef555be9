// Machine hours of an org in its billing period. A machine hour is one hour of one awake sandbox of
// any size.
import { z } from 'zod';
import { exampleUsage } from '../route/examples.ts';
import { END_USER_ID_CHARACTERS, USAGE_DAYS } from '../route/limits.ts';
import { numberInQuery } from '../route/number-in-query.ts';
import { defineRoute } from '../route/route.ts';
import { idText, text, timestamp } from '../route/text.ts';

const amount = z.number().nonnegative();

const usageAlertStatus = z.enum(['normal', 'warning', 'reached', 'exceeded']).meta({
  id: 'UsageAlertStatus',
  description:
    '`warning`: at least 80 % of the cap; `reached`: at the cap; `exceeded`: above it. More may be added; ' +
    'clients must accept unknown values.',
});
export type UsageAlertStatus = z.infer<typeof usageAlertStatus>;

const usageAlert = z
  .strictObject({
    percentUsed: amount.describe(
      'Percentage of the cap, may exceed 100; 0 without a cap. Rounded down to two decimals, so that 80 and ' +
        '100 are exact thresholds.',
    ),
    status: usageAlertStatus,
    message: z.string().min(1).describe('Human-readable.'),
  })
  .meta({ id: 'UsageAlert', description: 'Usage in relation to the cap.' });
export type UsageAlert = z.infer<typeof usageAlert>;

const orgUsage = z
  .strictObject({
    includedMachineHours: amount
      .nullable()
      .describe('Machine hours that the plan includes per billing period; null: unlimited.'),
    sandboxMachineHourLimit: amount.nullable().describe('The effective cap of this period; null: none.'),
    sandboxMachineHourLimitOverride: amount.nullable().describe('The cap configured by an org admin; null: none.'),
    sandboxOverageEnabled: z.boolean().describe('Whether sandboxes continue beyond the cap.'),
    usedMachineHours: amount.describe(
      'Machine hours used by the org, or by the project or end user of the query. Running sandboxes count up to now.',
    ),
    remainingMachineHours: amount.nullable().describe('Machine hours until the cap, at least 0; null without a cap.'),
    usageAlert,
    periodStartsAt: timestamp,
    periodEndsAt: timestamp,
    overageMachineHours: amount.describe('Machine hours of the org in excess of those included in its plan.'),
    estimatedOverageUsd: amount
      .nullable()
      .describe(
        "Estimated price of the overage; null if the plan has no price for it. The payment provider's " +
          'invoice is authoritative.',
      ),
  })
  .meta({
    id: 'OrgUsage',
    description:
      'Machine hours in the current billing period. With `projectId`, cap, remaining hours and alert are ' +
      'those of the project; the period, the included hours and the overage are always those of the org.',
  });
export type OrgUsage = z.infer<typeof orgUsage>;

const endUserUsage = z
  .strictObject({
    endUserId: z.string(),
    machineHours: amount,
    estimatedCogsUsd: amount.describe("Estimated cost of the resources, at the installation's rates."),
  })
  .meta({ id: 'EndUserUsage', description: 'Machine hours of an end user.' });
export type EndUserUsage = z.infer<typeof endUserUsage>;

const orgParams = z.object({ orgId: idText });

const usageFilter = {
  projectId: idText.optional().describe('Returns usage and cap of this project only.'),
  endUserId: text(1, END_USER_ID_CHARACTERS).optional().describe('Returns usage of this end user only.'),
};

export const getOrgUsage = defineRoute({
  name: 'getOrgUsage',
  summary: 'Returns machine hours in the current billing period and the cap, for the org, a project or an end user',
  method: 'GET',
  path: '/v1/orgs/{orgId}/usage',
  auth: ['session', 'api_key'],
  permission: 'billing.read',
  request: {
    params: orgParams,
    query: z.strictObject(usageFilter),
  },
  response: { status: 200, body: orgUsage },
  errors: ['no_active_plan', 'unknown_project'],
  activity: null,
  published: true,
  example: { answer: exampleUsage },
});

export const getDailyUsage = defineRoute({
  name: 'getDailyUsage',
  summary: 'Lists machine hours by day in UTC, oldest first, up to today, for the org, a project or an end user',
  method: 'GET',
  path: '/v1/orgs/{orgId}/usage/daily',
  auth: ['session', 'api_key'],
  permission: 'billing.read',
  request: {
    params: orgParams,
    query: z.strictObject({
      days: numberInQuery({ ...USAGE_DAYS, description: 'Number of days, today included.' }).default(
        USAGE_DAYS.default,
      ),
      ...usageFilter,
    }),
  },
  response: {
    status: 200,
    body: z.strictObject({
      days: z.array(
        z.strictObject({
          date: z
            .string()
            .regex(/^[0-9]{4}-[0-9]{2}-[0-9]{2}$/)
            .describe('Day in UTC, as `2026-01-31`.'),
          machineHours: amount.describe('Machine hours on the day; running sandboxes count up to now.'),
        }),
      ),
    }),
  },
  errors: ['unknown_project'],
  activity: null,
  published: true,
});

export const getEndUserUsage = defineRoute({
  name: 'getEndUserUsage',
  summary:
    'Lists machine hours by end user in the current billing period, highest first; sandboxes without an end ' +
    'user are omitted',
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
