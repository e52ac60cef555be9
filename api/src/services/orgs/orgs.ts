// Creation of orgs.
import { SELF_HOSTED_PLAN } from '@berth/contract/billing/plans.ts';
import type { Actor } from '../../rules/access/access.ts';
import { planOrNull } from '../../rules/billing/plan-catalogue.ts';
import { planWithMostOrgs, requireShare } from '../../rules/orgs/fair-shares.ts';
import { insertActivity } from '../../store/activity/activity.ts';
import { findOrg, insertMembership, insertOrg } from '../../store/people/identity.ts';
import { newId } from '../../store/database/ids.ts';
import { countCreatedOrgs } from '../../store/orgs/fair-shares.ts';
import { lockUser } from '../../store/people/accounts.ts';
import type { OrgRow } from '../../store/database/schema.ts';
import { insertSubscription } from '../../store/billing/subscriptions.ts';
import type { ServiceContext } from '../context/context.ts';

export type { OrgRow };

/** Creates an org on the initial plan, owned by the caller. Throws `org_limit`. */
export async function createOrg(context: ServiceContext, actor: Actor, { name }: { name: string }): Promise<OrgRow> {
  const orgId = newId('org');
  return await context.db.transaction().execute(async (trx) => {
    await lockUser(trx, actor.userId);
    const created = await countCreatedOrgs(trx, actor.userId);
    const plans = created.map(({ plan, status }) =>
      planOrNull(context.plans, plan === null || status === null ? undefined : { plan, status }),
    );
    const count = created.reduce((sum, group) => sum + group.count, 0);
    const { shares } = context.settings;
    requireShare(shares, 'orgsPerUser', count, planWithMostOrgs(shares, plans));
    await insertOrg(trx, { id: orgId, name, createdBy: actor.userId });
    await insertSubscription(trx, { orgId, plan: SELF_HOSTED_PLAN.id });
    await insertMembership(trx, { orgId, userId: actor.userId, role: 'owner' });
    await insertActivity(trx, { orgId, actor, kind: 'org_created', details: { name } });
    const made = await findOrg(trx, orgId);
    if (made === undefined) throw new Error(`the org ${orgId} is missing in the transaction that created it`);
    return made;
  });
}
