// Adds closed usage intervals to the sums per day and billing period, so that the cost of a usage
// query is bounded. Exactly once: a transaction under the org's lock takes an interval off the list
// and adds it (store/usage/rollup.ts).
import { periodOfSubscription } from '../../services/billing/period.ts';
import { readClock } from '../../store/database/clock.ts';
import type { Database, DatabaseTransaction } from '../../store/database/schema.ts';
import { findSubscription } from '../../store/billing/subscriptions.ts';
import { cutUsageAt, listUncutOrgs, lockUsageSums, nextUnrolledOrg, rollUpUsage } from '../../store/usage/rollup.ts';
import { crashPoint } from '../steps/crash-point.ts';
import type { ReplicaSession } from '../steps/replica-session.ts';
import type { StepContext } from '../steps/step-context.ts';

/** Poll interval; usage queries add the intervals closed since. */
export const USAGE_ROLLUP_EVERY_MS = 5_000;
/** Intervals per transaction: well below a second of work. */
const BATCH = 5_000;
const UNCUT_BATCH = 100;

/** Updates the sums of every org, batch by batch. */
export async function rollUpAllUsage(
  context: Pick<StepContext, 'db' | 'log' | 'stopping'>,
  session: Pick<ReplicaSession, 'isLeader'>,
  batch = BATCH,
): Promise<void> {
  if (!(await session.isLeader('usage-rollup'))) return;
  for (const orgId of await listUncutOrgs(context.db, UNCUT_BATCH)) await attempt(context, orgId, 0);
  let left = true;
  while (left) {
    left = false;
    for (
      let orgId = await nextUnrolledOrg(context.db, '');
      orgId !== undefined && !context.stopping.aborted;
      orgId = await nextUnrolledOrg(context.db, orgId)
    )
      if ((await attempt(context, orgId, batch)) === batch) left = true;
  }
}

async function attempt(
  { db, log, stopping }: Pick<StepContext, 'db' | 'log' | 'stopping'>,
  orgId: string,
  most: number,
): Promise<number> {
  try {
    return await rollUpOrgUsage(db, orgId, most);
  } catch (error) {
    // A failure must not block the other orgs.
    if (!stopping.aborted) log.warn({ err: error, orgId }, 'could not sum the usage of an org; the next scan retries');
    return 0;
  }
}

/**
 * Adds up to `most` of the org's intervals to its sums; resolves with their number, 0 while another
 * transaction holds the lock.
 */
export async function rollUpOrgUsage(db: Database, orgId: string, most: number): Promise<number> {
  const added = await db.transaction().execute(async (trx) => {
    if (!(await lockUsageSums(trx, orgId))) return 0;
    await cutAtPeriods(trx, orgId);
    crashPoint('rollup:cut-written');
    const count = most === 0 ? 0 : await rollUpUsage(trx, orgId, most);
    crashPoint('rollup:sums-written');
    return count;
  });
  crashPoint('rollup:committed');
  return added;
}

/**
 * Start and end of the current billing period, and starts of the subscription and its monthly
 * count.
 */
async function cutAtPeriods(trx: DatabaseTransaction, orgId: string): Promise<void> {
  const subscription = await findSubscription(trx, orgId);
  if (subscription === undefined) return;
  const { startsAt, endsAt } = periodOfSubscription(subscription, await readClock(trx));
  for (const at of [startsAt, endsAt, subscription.started_at, subscription.period_anchor])
    await cutUsageAt(trx, orgId, at);
}
