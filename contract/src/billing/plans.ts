// The plan catalogue. Configuration, not a resource: read from BERTH_PLANS_FILE, otherwise the
// self-hosted plan.
import { z } from 'zod';
import { machineRates } from './machine-rates.ts';
import { machineSize } from '../sandboxes/machine-sizes.ts';
import { text } from '../route/text.ts';

/** Upper limit of machine hours; sums remain exact in milliseconds. */
export const MOST_MACHINE_HOURS = 100_000_000;

/** Upper limit of `orgs`, `projects` and `apiKeys`, and of their defaults in the configuration. */
export const MOST_FAIR_SHARE = 1_000_000;

/** Upper limit of `requestsPerMinute`, and of its default in the configuration. */
export const MOST_ORG_REQUESTS = 10_000_000;

/** A century; far from the end of Postgres' calendar. */
const MOST_RETENTION_DAYS = 36_500;
const DEFAULT_RETENTION_DAYS = 90;

/** A plan. null means no limit, unless its field says otherwise. */
export const plan = z.strictObject({
  /** Referenced by subscriptions. */
  id: z.string().regex(/^[a-z0-9][a-z0-9-]{0,62}$/, 'must be lowercase letters, digits and hyphens'),
  name: text(1, 100),
  /** Selects the infrastructure; clients cannot set it (spec: Sandbox). */
  tier: z.string().regex(/^[a-z0-9][a-z0-9-]{0,62}$/, 'must be lowercase letters, digits and hyphens'),
  /** Maximum number of sandboxes that are awake or starting. */
  concurrentSandboxes: z.int().positive().nullable(),
  /** Largest size at create or resize: a limit of vCPUs, memory and disk each. */
  largestSize: machineSize.nullable(),
  /** Maximum lifetime of an ephemeral sandbox in seconds, including renewals. */
  ephemeralSessionSeconds: z.int().positive().nullable(),
  includedMachineHours: z
    .number()
    .nonnegative()
    .max(MOST_MACHINE_HOURS)
    .nullable()
    .default(null)
    .describe('Machine hours included per billing period: the default cap of the org; null: unlimited.'),
  /** Price of a machine hour of overage in US dollars, for estimates. null: free. */
  overageUsdPerMachineHour: z.number().nonnegative().max(10_000).nullable().default(null),
  /** Days for which entries of the activity feed are kept. */
  activityRetentionDays: z.int().min(1).max(MOST_RETENTION_DAYS).nullable().default(DEFAULT_RETENTION_DAYS),
  /**
   * Orgs that the creator of an org on this plan may create; the largest number of their orgs
   * counts. null: the limit of the configuration (BERTH_ORGS_PER_USER).
   */
  orgs: z.int().positive().max(MOST_FAIR_SHARE).nullable().default(null),
  /**
   * Requests per minute of all credentials of an org on one replica. null: the limit of the
   * configuration (BERTH_ORG_REQUESTS_PER_MINUTE).
   */
  requestsPerMinute: z.int().positive().max(MOST_ORG_REQUESTS).nullable().default(null),
  /** Projects of an org. null: the limit of the configuration (BERTH_PROJECTS_PER_ORG). */
  projects: z.int().positive().max(MOST_FAIR_SHARE).nullable().default(null),
  /** Usable API keys of an org. null: the limit of the configuration (BERTH_API_KEYS_PER_ORG). */
  apiKeys: z.int().positive().max(MOST_FAIR_SHARE).nullable().default(null),
  /**
   * Id of the payment provider's price, monthly or yearly. null: the plan cannot be bought, only
   * assigned by the operator (`berth plans set`).
   */
  priceId: text(1, 255).nullable().default(null),
});
export type Plan = z.infer<typeof plan>;

export const planCatalogue = z
  .strictObject({ plans: z.array(plan).min(1), machineRates: machineRates.optional() })
  .check((context) => {
    const ids = context.value.plans.map(({ id }) => id);
    const twice = ids.find((id, index) => ids.indexOf(id) !== index);
    if (twice !== undefined)
      context.issues.push({ code: 'custom', input: context.value, message: `duplicate plan ${twice}` });
    const prices = context.value.plans.flatMap(({ priceId }) => (priceId === null ? [] : [priceId]));
    const sold = prices.find((price, index) => prices.indexOf(price) !== index);
    if (sold !== undefined) {
      context.issues.push({
        code: 'custom',
        input: context.value,
        message: `duplicate priceId ${sold}: a payment could not be matched to one plan`,
      });
    }
  });

/** Plan of orgs without a subscription to another one. */
export const SELF_HOSTED_PLAN: Plan = {
  id: 'self-hosted',
  name: 'Self-hosted',
  tier: 'standard',
  concurrentSandboxes: null,
  largestSize: null,
  ephemeralSessionSeconds: null,
  includedMachineHours: null,
  overageUsdPerMachineHour: null,
  activityRetentionDays: DEFAULT_RETENTION_DAYS,
  orgs: null,
  requestsPerMinute: null,
  projects: null,
  apiKeys: null,
  priceId: null,
};
