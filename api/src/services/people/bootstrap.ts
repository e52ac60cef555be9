// First start of an installation. Creates, in one transaction: the owner's account with its welcome
// link, an org with a plan, a project and an operator API key.
import { ONE_TIME_LINK_MINUTES } from '@berth/contract/route/limits.ts';
import { SELF_HOSTED_PLAN } from '@berth/contract/billing/plans.ts';
import { DEFAULT_USE_CASE } from '@berth/contract/orgs/projects.ts';
import type { BootstrapResult } from '@berth/protocol/operator-commands.ts';
import { insertActivity } from '../../store/activity/activity.ts';
import {
  findOperatorOrgId,
  insertMembership,
  insertOrg,
  insertUser,
  lockBootstrap,
} from '../../store/people/identity.ts';
import { newId } from '../../store/database/ids.ts';
import { findOldestProject, insertProject } from '../../store/orgs/projects.ts';
import type { Database } from '../../store/database/schema.ts';
import { insertSubscription } from '../../store/billing/subscriptions.ts';
import { mintApiKey, OPERATOR } from '../access/api-keys.ts';
import { requireOwnedOrg } from '../access/owned-org.ts';
import { makeOneTimeLink, oneTimeLinkPath } from '../access/one-time-links.ts';

export interface BootstrapNames {
  ownerEmail: string;
  ownerName: string;
  orgName: string;
  projectName: string;
  keyName: string;
}

/**
 * Creates the operator's account, org, project and key. Changes nothing on an installation with an
 * operator's org; throws if it has no owner. Safe to run concurrently.
 */
export async function bootstrap(db: Database, names: BootstrapNames): Promise<BootstrapResult> {
  return await db.transaction().execute(async (trx) => {
    await lockBootstrap(trx);
    if ((await findOperatorOrgId(trx)) !== undefined) {
      const first = await requireOwnedOrg(trx);
      const oldest = await findOldestProject(trx, first.orgId);
      return { created: false, orgId: first.orgId, projectId: oldest?.id ?? null, userId: first.ownerId };
    }
    const userId = newId('user');
    const orgId = newId('org');
    const projectId = newId('project');
    await insertUser(trx, { id: userId, name: names.ownerName, email: names.ownerEmail });
    await insertOrg(trx, { id: orgId, name: names.orgName, isOperator: true });
    await insertSubscription(trx, { orgId, plan: SELF_HOSTED_PLAN.id });
    await insertMembership(trx, { orgId, userId, role: 'owner' });
    await insertActivity(trx, { orgId, actor: OPERATOR, kind: 'org_created', details: { name: names.orgName } });
    await insertProject(trx, {
      id: projectId,
      org_id: orgId,
      name: names.projectName,
      use_case: DEFAULT_USE_CASE,
      created_by: userId,
    });
    await insertActivity(trx, {
      orgId,
      projectId,
      actor: OPERATOR,
      kind: 'project_created',
      details: { name: names.projectName },
    });
    const key = await mintApiKey(trx, {
      orgId,
      createdBy: userId,
      name: names.keyName,
      scopes: null,
      expiresInDays: null,
    });
    const welcome = await makeOneTimeLink(trx, { purpose: 'welcome', userId, minutes: ONE_TIME_LINK_MINUTES.welcome });
    return {
      created: true,
      orgId,
      projectId,
      userId,
      keyId: key.keyId,
      token: key.token,
      welcomePath: oneTimeLinkPath('welcome', welcome),
    };
  });
}
