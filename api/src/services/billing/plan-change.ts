// Plan changes by the operator on the host. plans.ts enforces what a plan allows.
import type { PlanChange } from '@berth/protocol/operator-commands.ts';
import type { Plans } from '../../rules/billing/plan-catalogue.ts';
import { insertActivity } from '../../store/activity/activity.ts';
import type { Database } from '../../store/database/schema.ts';
import { lockSubscription, writeSubscription } from '../../store/billing/subscriptions.ts';
import { OPERATOR } from '../access/api-keys.ts';
import { requireOwnedOrg } from '../access/owned-org.ts';

/**
 * Puts a catalogue plan in force for the org, or for the operator's org. Awake sandboxes
 * stay awake, even above the new limits, which apply from the next create, wake, resize or renewal.
 * Billing periods continue. Throws if there is no such plan or org, or if the org pays for its
 * plan.
 */
export async function changePlan(
  db: Database,
  plans: Plans,
  change: { orgId?: string | undefined; plan: string },
): Promise<PlanChange> {
  const { plan } = change;
  if (!plans.has(plan)) {
    throw new Error(
      `there is no plan '${plan}' in the catalogue (BERTH_PLANS_FILE); known: ${[...plans.keys()].join(', ')}`,
    );
  }

  return await db.transaction().execute(async (trx) => {
    const { orgId } = await requireOwnedOrg(trx, change.orgId);
    const had = await lockSubscription(trx, orgId);
    const paid = had?.provider_subscription_id;
    if (paid != null && had?.status !== 'canceled') {
      throw new Error(
        `the org ${orgId} pays for its plan with the subscription ${paid}: change or cancel it at the payment provider`,
      );
    }

    const before = had === undefined ? null : { plan: had.plan, status: had.status };
    if (before?.plan === plan && before.status === 'active') return { orgId, plan, before };
    await writeSubscription(trx, { orgId, plan });
    await insertActivity(trx, { orgId, actor: OPERATOR, kind: 'plan_changed', details: { from: before, to: plan } });
    return { orgId, plan, before };
  });
}
