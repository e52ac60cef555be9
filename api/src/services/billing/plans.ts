// An org's plan in force and its limits. Every transaction that creates or wakes a VM checks them
// here.
//
// Lock order in such a transaction: the sandbox row, the subscription row, the host row
// (services/hosts/placement.ts).
import type { Allocation } from '@berth/contract/sandboxes/machine-sizes.ts';
import type { Plan } from '@berth/contract/billing/plans.ts';
import type { Plans } from '../../rules/billing/plan-catalogue.ts';
import { CodedError } from '../../rules/coded-error.ts';
import { requireOneMore, requireSizeWithinPlan } from '../../rules/billing/plan-limits.ts';
import type { DatabaseTransaction, SubscriptionRow } from '../../store/database/schema.ts';
import { countConcurrent, findSubscription, lockSubscription } from '../../store/billing/subscriptions.ts';
import type { ServiceContext } from '../context/context.ts';

type PlanContext = Pick<ServiceContext, 'plans' | 'log'>;

/**
 * Throws `no_active_plan` without a subscription, after its end, or if the catalogue lacks the
 * plan.
 */
export async function planInForce(context: PlanContext, trx: DatabaseTransaction, orgId: string): Promise<Plan> {
  return planOf(context, orgId, await findSubscription(trx, orgId));
}

/** Throws `plan_limit` unless the org's plan allows VMs of this size, or `no_active_plan`. */
export async function requireWithinPlan(
  context: PlanContext,
  trx: DatabaseTransaction,
  orgId: string,
  allocation: Allocation,
): Promise<void> {
  requireSizeWithinPlan(await planInForce(context, trx, orgId), allocation);
}

/**
 * Throws `concurrent_sandbox_limit` if another awake (or waking) sandbox would exceed the org's
 * plan, or `no_active_plan`. With a cap, locks the org's subscription until the transaction ends;
 * the transaction must commit the sandbox.
 */
export async function requireConcurrentRoom(
  context: PlanContext,
  trx: DatabaseTransaction,
  orgId: string,
): Promise<void> {
  // Without a cap nothing is counted, and creates run concurrently.
  if ((await planInForce(context, trx, orgId)).concurrentSandboxes === null) return;
  const plan = planOf(context, orgId, await lockSubscription(trx, orgId));
  requireOneMore(plan, await countConcurrent(trx, orgId));
}

/** The subscription with its plan in force. Throws `no_active_plan` if no plan is in force. */
export function inForce(
  plans: Plans,
  subscription: SubscriptionRow | undefined,
): { subscription: SubscriptionRow; plan: Plan } {
  if (subscription?.status === 'canceled')
    throw new CodedError('no_active_plan', `this org's plan ${subscription.plan} has ended`);
  return namedPlan(plans, subscription);
}

/** The subscription with its plan, ended or not. Throws `no_active_plan` if there is none. */
export function namedPlan(
  plans: Plans,
  subscription: SubscriptionRow | undefined,
): { subscription: SubscriptionRow; plan: Plan } {
  if (subscription === undefined) throw new CodedError('no_active_plan', 'this org has no plan');
  const plan = plans.get(subscription.plan);
  if (plan !== undefined) return { subscription, plan };
  throw new CodedError('no_active_plan', `this installation does not offer this org's plan ${subscription.plan}`);
}

function planOf(context: PlanContext, orgId: string, subscription: SubscriptionRow | undefined): Plan {
  if (subscription !== undefined && subscription.status !== 'canceled' && !context.plans.has(subscription.plan)) {
    context.log.error(
      { orgId, plan: subscription.plan, known: [...context.plans.keys()] },
      'an org has a plan that is not in the catalogue (BERTH_PLANS_FILE); ' +
        'its creates, wakes, resizes and renewals are rejected',
    );
  }
  return inForce(context.plans, subscription).plan;
}
