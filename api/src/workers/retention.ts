// Deletes expired rows: sign-in data, idempotency keys, preview links, metrics samples, rate limit
// buckets, entries of the activity feed. Except for the feed, expired rows are ignored or refused
// anyway; this bounds the tables.
import { LONGEST_WINDOW_MS } from '../rules/metrics/recommendation.ts';
import { longestRetention, plansByRetention } from '../rules/activity/retention.ts';
import type { Plans } from '../rules/billing/plan-catalogue.ts';
import { LONGEST_REFILL_SECONDS } from '../rules/access/throttle.ts';
import { addActivityPartition, dropActivityPartitions } from '../store/activity/partitions.ts';
import { deleteOldActivity, plansInUse } from '../store/activity/retention.ts';
import { deleteOldIdempotencyKeys } from '../store/sandboxes/idempotency.ts';
import { deleteOldMetricsSamples } from '../store/metrics/samples.ts';
import { deleteOldPreviewLinks } from '../store/previews/links.ts';
import { deleteExpired, EXPIRING_TABLES } from '../store/people/sign-in.ts';
import { deleteIdleBuckets } from '../store/access/throttle.ts';
import { deleteGoneSessions } from '../store/agents/sessions.ts';
import { deleteOldTurns } from '../store/agents/turns.ts';
import { AGENT_TURNS_KEPT } from '@berth/contract/route/limits.ts';
import { deleteCapWarnings } from '../store/usage/caps.ts';
import type { ReplicaSession } from './steps/replica-session.ts';
import type { StepContext } from './steps/step-context.ts';

export const RETENTION_EVERY_MS = 60_000;
export const ACTIVITY_PARTITIONS_EVERY_MS = 3_600_000;
export const CAP_WARNING_RETENTION_EVERY_MS = 3_600_000;
/** Longer than any billing period. */
const WARNINGS_KEPT_DAYS = 400;
/** Small, so that no transaction locks many rows; a pass after a burst has many batches. */
const BATCH = 500;
/** Limit of samples per pass: after an upgrade there may be years of them. */
const MOST_SAMPLES = 50_000;
/** The same for entries of the feed, per retention; more than one replica writes in a minute. */
const MOST_ENTRIES = 100_000;

type RetentionContext = Pick<StepContext, 'db' | 'stopping'> & { plans: Plans };

/** Runs a pass over all tables. */
export async function removeOldRows(
  context: RetentionContext,
  session: Pick<ReplicaSession, 'isLeader'>,
): Promise<void> {
  if (!(await session.isLeader('retention'))) return;
  for (const table of EXPIRING_TABLES) await inBatches(context, () => deleteExpired(context.db, table, BATCH));
  await inBatches(context, () => deleteOldIdempotencyKeys(context.db, BATCH));
  await inBatches(context, () => deleteOldPreviewLinks(context.db, BATCH));
  await inBatches(context, () => deleteOldTurns(context.db, AGENT_TURNS_KEPT.days, BATCH));
  await inBatches(context, () => deleteGoneSessions(context.db, AGENT_TURNS_KEPT.days, BATCH));
  await inBatches(context, () => deleteIdleBuckets(context.db, LONGEST_REFILL_SECONDS, BATCH));
  await inBatches(context, () => deleteOldMetricsSamples(context.db, LONGEST_WINDOW_MS, BATCH), MOST_SAMPLES);
  for (const group of plansByRetention(context.plans))
    await inBatches(context, () => deleteOldActivity(context.db, group, BATCH), MOST_ENTRIES);
}

/** Adds the next partition of the activity feed and drops those that no plan in use keeps. */
export async function renewActivityPartitions(
  { db, plans, log }: RetentionContext & Pick<StepContext, 'log'>,
  session: Pick<ReplicaSession, 'isLeader'>,
): Promise<void> {
  if (!(await session.isLeader('activity-partitions'))) return;
  const added = await addActivityPartition(db);
  if (added !== null) log.info({ partition: added }, 'added a partition of the activity feed');
  const days = longestRetention(plans, await plansInUse(db));
  const dropped = days === null ? [] : await dropActivityPartitions(db, days);
  if (dropped.length > 0) log.info({ partitions: dropped, days }, 'dropped old partitions of the activity feed');
}

/** Deletes cap warnings of past billing periods. */
export async function purgeCapWarnings(
  context: Pick<StepContext, 'db' | 'stopping'>,
  session: Pick<ReplicaSession, 'isLeader'>,
): Promise<void> {
  if (!(await session.isLeader('cap-warning-retention'))) return;
  await inBatches(context, () => deleteCapWarnings(context.db, WARNINGS_KEPT_DAYS, BATCH));
}

async function inBatches(
  { stopping }: Pick<StepContext, 'stopping'>,
  removeSome: () => Promise<number>,
  most = Infinity,
): Promise<void> {
  let removed = BATCH;
  for (let all = 0; removed === BATCH && all < most && !stopping.aborted; all += removed) removed = await removeSome();
}
