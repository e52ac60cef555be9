// Creation of orgs.
import { SELF_HOSTED_PLAN } from '@berth/contract/billing/plans.ts';
import type { Actor } from '../../rules/access/access.ts';
import { insertActivity } from '../../store/activity/activity.ts';
import { findOrg, insertMembership, insertOrg } from '../../store/people/identity.ts';
import { newId } from '../../store/database/ids.ts';
import type { OrgRow } from '../../store/database/schema.ts';
import { insertSubscription } from '../../store/billing/subscriptions.ts';
import type { ServiceContext } from '../context/context.ts';

export type { OrgRow };

/** Creates an org on the initial plan, owned by the caller. */
export async function createOrg(context: ServiceContext, actor: Actor, { name }: { name: string }): Promise<OrgRow> {
  const orgId = newId('org');
  return await context.db.transaction().execute(async (trx) => {
    await insertOrg(trx, { id: orgId, name });
    await insertSubscription(trx, { orgId, plan: SELF_HOSTED_PLAN.id });
    await insertMembership(trx, { orgId, userId: actor.userId, role: 'owner' });
    await insertActivity(trx, { orgId, actor, kind: 'org_created', details: { name } });
    const made = await findOrg(trx, orgId);
    if (made === undefined) throw new Error(`the org ${orgId} is missing in the transaction that created it`);
    return made;
  });
}
