// How much machine time an org used in its billing period. A machine hour is one hour of one awake machine, whatever its size.
import { z } from 'zod';
import { END_USER_ID_CHARACTERS } from './limits.ts';
import { defineRoute } from './route.ts';
import { idText, text, timestamp } from './text.ts';

const amount = z.number().nonnegative();

/** `warning` from 80 % of the cap on, `reached` at the cap, `exceeded` above it. Clients accept values that they do not know. */
export const usageAlertStatus = z.enum(['normal', 'warning', 'reached', 'exceeded']);
export type UsageAlertStatus = z.infer<typeof usageAlertStatus>;

export const usageAlert = z.strictObject({
  /** Of the cap; may be above 100. 0 without a cap. Rounded down to the hundredth, so that 80 and 100 are what they say. */
  percentUsed: amount,
  status: usageAlertStatus,
  /** For people. */
  message: z.string().min(1),
});
export type UsageAlert = z.infer<typeof usageAlert>;

/** With `projectId`, cap, remaining hours and alert are the project's; the billing period, what the plan includes and the overage are always the org's. */
export const orgUsage = z.strictObject({
  /** In the plan, for a billing period; null: without a limit. */
  includedMachineHours: amount.nullable(),
  /** The cap in force in this period; null: none. */
  sandboxMachineHourLimit: amount.nullable(),
  /** The cap that an org admin set; null: none. */
  sandboxMachineHourLimitOverride: amount.nullable(),
  sandboxOverageEnabled: z.boolean(),
  /** Of what was asked for: the org, a project, an end user. What runs is counted until now. */
  usedMachineHours: amount,
  /** Until the cap, at least 0; null without a cap. */
  remainingMachineHours: amount.nullable(),
  usageAlert,
  periodStartsAt: timestamp,
  periodEndsAt: timestamp,
  /** Hours of the org beyond what its plan includes. */
  overageMachineHours: amount,
  /** What those cost by the plan; null where the plan has no price for them. An estimate: bills are the payment provider's. */
  estimatedOverageUsd: amount.nullable(),
});
export type OrgUsage = z.infer<typeof orgUsage>;

export const endUserUsage = z.strictObject({
  endUserId: z.string(),
  machineHours: amount,
  /** What the machines cost by the rates of the installation. */
  estimatedCogsUsd: amount,
});
export type EndUserUsage = z.infer<typeof endUserUsage>;

const orgParams = z.object({ orgId: idText });

export const getOrgUsage = defineRoute({
  name: 'getOrgUsage',
  summary: 'Machine hours of the org, or of one of its projects or end users, in the present billing period, against the cap',
  method: 'GET',
  path: '/v1/orgs/{orgId}/usage',
  auth: ['session', 'api_key'],
  permission: 'billing.read',
  request: {
    params: orgParams,
    query: z.object({ projectId: idText.optional(), endUserId: text(1, END_USER_ID_CHARACTERS).optional() }),
  },
  response: { status: 200, body: orgUsage },
  errors: ['no_active_plan', 'unknown_project'],
  activity: null,
  published: true,
});

export const getEndUserUsage = defineRoute({
  name: 'getEndUserUsage',
  summary: 'Machine hours of each end user in the present billing period, most first; what ran for no end user is left out',
  method: 'GET',
  path: '/v1/orgs/{orgId}/usage/end-users',
  auth: ['session', 'api_key'],
  permission: 'billing.read',
  request: { params: orgParams },
  response: { status: 200, body: z.strictObject({ periodStartsAt: timestamp, periodEndsAt: timestamp, endUsers: z.array(endUserUsage) }) },
  errors: ['no_active_plan'],
  activity: null,
  published: true,
});
