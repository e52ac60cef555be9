// Entries of the activity feed about a person, who may be in several orgs or in none.
import { insertActivities, type ActivityActor, type NewActivity } from '../../store/activity/activity.ts';
import type { Database } from '../../store/database/schema.ts';
import { listOrgsOfUser } from '../../store/people/identity.ts';

/** Adds an entry to the feed of each org of the person. */
export async function recordInOrgs(
  trx: Database,
  { userId, actor }: { userId: string; actor: ActivityActor },
  entry: Pick<NewActivity, 'kind' | 'subject' | 'details'>,
): Promise<void> {
  const orgs = await listOrgsOfUser(trx, userId, null);
  await insertActivities(
    trx,
    orgs.map(({ id: orgId }) => ({ orgId, actor, ...entry })),
  );
}
