// The plan catalogue: what an org's plan allows. Configuration, not a resource: read from a file,
// or the one plan of a self-hosted installation.
import { z } from 'zod';
import { machineRates } from './machine-rates.ts';
import { machineSize } from '../sandboxes/machine-sizes.ts';
import { text } from '../route/text.ts';

/** More machine hours than any org uses in a month; sums of them stay exact in milliseconds. */
export const MOST_MACHINE_HOURS = 100_000_000;

/** One plan. null: no limit. */
export const plan = z.strictObject({
  /** Named by an org's subscription. */
  id: z.string().regex(/^[a-z0-9][a-z0-9-]{0,62}$/, 'must be lowercase letters, digits and hyphens'),
  name: text(1, 100),
  /** Chooses the infrastructure; not a client's input (spec: Sandbox). */
  tier: z.string().regex(/^[a-z0-9][a-z0-9-]{0,62}$/, 'must be lowercase letters, digits and hyphens'),
  /** Sandboxes that may be awake, or on their way there, at the same time. */
  concurrentSandboxes: z.int().positive().nullable(),
  /**
   * The largest machine size that may be asked for, at create or by a resize: none of its three
   * amounts may be passed.
   */
  largestSize: machineSize.nullable(),
  /** How long an ephemeral sandbox may live from its create on, renewals included. */
  ephemeralSessionSeconds: z.int().positive().nullable(),
  /**
   * Machine hours of a billing period that the plan includes: the org's cap unless it has set
   * another one. null: no cap.
   */
  includedMachineHours: z.number().nonnegative().max(MOST_MACHINE_HOURS).nullable().default(null),
  /**
   * What a machine hour beyond the included ones costs, in US dollars: for estimates, as bills are
   * the payment provider's. null: nothing.
   */
  overageUsdPerMachineHour: z.number().nonnegative().max(10_000).nullable().default(null),
  /**
   * The payment provider's price that buys the plan, by the month or the year. null: the plan
   * cannot be bought, only given by the operator.
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
      context.issues.push({ code: 'custom', input: context.value, message: `the plan ${twice} is there twice` });
    const prices = context.value.plans.flatMap(({ priceId }) => (priceId === null ? [] : [priceId]));
    const sold = prices.find((price, index) => prices.indexOf(price) !== index);
    if (sold !== undefined) {
      context.issues.push({
        code: 'custom',
        input: context.value,
        message: `the priceId ${sold} is that of two plans: a payment would not say which`,
      });
    }
  });
export type PlanCatalogue = z.infer<typeof planCatalogue>;

/** The plan of an org that nobody gave another one. */
export const SELF_HOSTED_PLAN: Plan = {
  id: 'self-hosted',
  name: 'Self-hosted',
  tier: 'standard',
  concurrentSandboxes: null,
  largestSize: null,
  ephemeralSessionSeconds: null,
  includedMachineHours: null,
  overageUsdPerMachineHour: null,
  priceId: null,
};
