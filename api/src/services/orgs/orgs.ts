// Creation and names of orgs.
import { SELF_HOSTED_PLAN } from '@berth/contract/billing/plans.ts';
import { role as roleName } from '@berth/contract/route/permissions.ts';
import type { Actor } from '../../rules/access/access.ts';
import { CodedError } from '../../rules/coded-error.ts';
import { planOrNull } from '../../rules/billing/plan-catalogue.ts';
import { planWithMostOrgs, requireShare } from '../../rules/orgs/fair-shares.ts';
import { insertActivity } from '../../store/activity/activity.ts';
import { findOrg, findRole, insertMembership, insertOrg, renameOrg as setName } from '../../store/people/identity.ts';
import { newId } from '../../store/database/ids.ts';
import { countCreatedOrgs, lockOrg } from '../../store/orgs/fair-shares.ts';
import { lockUser } from '../../store/people/accounts.ts';
import { forCaller, type CallerOrg } from '../access/identity.ts';
import { insertSubscription } from '../../store/billing/subscriptions.ts';
import type { ServiceContext } from '../context/context.ts';

/** Creates an org on the initial plan, owned by the caller. Throws `org_limit`. */
export async function createOrg(context: ServiceContext, actor: Actor, { name }: { name: string }): Promise<CallerOrg> {
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
    return forCaller(actor, made, 'owner');
  });
}

/** Renames an org. The same name again changes nothing and is not recorded. */
export async function renameOrg(
  context: ServiceContext,
  actor: Actor,
  orgId: string,
  name: string,
): Promise<CallerOrg> {
  return await context.db.transaction().execute(async (trx) => {
    await lockOrg(trx, orgId);
    const before = await findOrg(trx, orgId);
    const role = roleName.safeParse(await findRole(trx, orgId, actor.userId));
    if (before === undefined || !role.success) throw new CodedError('org_not_found', 'there is no org with this id');
    if (before.name === name) return forCaller(actor, before, role.data);
    await setName(trx, orgId, name);
    const details = { changes: { name: { from: before.name, to: name } } };
    await insertActivity(trx, { orgId, actor, kind: 'org_updated', details });
    return forCaller(actor, { ...before, name }, role.data);
  });
}
