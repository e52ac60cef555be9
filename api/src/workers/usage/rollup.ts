// Adds closed usage intervals to the sums by day and billing period, so that asking for usage costs
// the same however much there is of it. One replica leads; what makes it exactly once is the
// transaction that takes an interval off the list and adds it, under the org's lock
// (store/usage-rollup.ts).
import { periodOfSubscription } from '../../services/billing/period.ts';
import { readClock } from '../../store/database/clock.ts';
import type { Database, DatabaseTransaction } from '../../store/database/schema.ts';
import { findSubscription } from '../../store/billing/subscriptions.ts';
import { cutUsageAt, listUncutOrgs, lockUsageSums, nextUnrolledOrg, rollUpUsage } from '../../store/usage/rollup.ts';
import { crashPoint } from '../steps/crash-point.ts';
import type { ReplicaSession } from '../steps/replica-session.ts';
import type { StepContext } from '../steps/step-context.ts';

/** How often to look: what closed since the last time is summed by those who ask. */
export const USAGE_ROLLUP_EVERY_MS = 5_000;
/** Intervals of one transaction: well below a second of work. */
const BATCH = 5_000;
const UNCUT_BATCH = 100;

/** One look: brings the sums of every org up to date, an org's batch after another's. */
export async function rollUpAllUsage(
  context: Pick<StepContext, 'db' | 'log' | 'stopping'>,
  session: Pick<ReplicaSession, 'leads'>,
  batch = BATCH,
): Promise<void> {
  if (!(await session.leads('usage-rollup'))) return;
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
    // One org's must not keep the others'.
    if (!stopping.aborted) log.warn({ err: error, orgId }, 'could not sum the usage of an org; it will be tried again');
    return 0;
  }
}

/**
 * Adds up to so many of the org's intervals to its sums; resolves with how many. None while another
 * transaction is at it.
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
 * Where the present billing period begins and ends, and where the subscription and the count of its
 * months begin.
 */
async function cutAtPeriods(trx: DatabaseTransaction, orgId: string): Promise<void> {
  const subscription = await findSubscription(trx, orgId);
  if (subscription === undefined) return;
  const { startsAt, endsAt } = periodOfSubscription(subscription, await readClock(trx));
  for (const at of [startsAt, endsAt, subscription.started_at, subscription.period_anchor])
    await cutUsageAt(trx, orgId, at);
}
