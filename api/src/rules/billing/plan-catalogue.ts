// The plans of this installation, by id. Pure; config/config.ts reads the plans file.
import { SELF_HOSTED_PLAN, type Plan } from '@berth/contract/billing/plans.ts';

export type Plans = ReadonlyMap<string, Plan>;

/**
 * The configured plans and the built-in self-hosted plan. A configured plan with the same id
 * replaces it.
 */
export function planCatalogueOf(configured: readonly Plan[] = []): Plans {
  return new Map([SELF_HOSTED_PLAN, ...configured].map((plan) => [plan.id, plan]));
}

/** The plan of a subscription; null if none is in force: then the configuration sets limits. */
export function planOrNull(plans: Plans, subscription: { plan: string; status: string } | undefined): Plan | null {
  return subscription === undefined || subscription.status === 'canceled'
    ? null
    : (plans.get(subscription.plan) ?? null);
}
