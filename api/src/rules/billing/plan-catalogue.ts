// The plans that this installation knows, by id. Pure; config.ts reads the file they come from.
import { SELF_HOSTED_PLAN, type Plan } from '@berth/contract/billing/plans.ts';

export type Plans = ReadonlyMap<string, Plan>;

/**
 * The configured plans and the self-hosted one, which is always there; a configured plan of its id
 * stands in its place.
 */
export function planCatalogueOf(configured: readonly Plan[] = []): Plans {
  return new Map([SELF_HOSTED_PLAN, ...configured].map((plan) => [plan.id, plan]));
}
