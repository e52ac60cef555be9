// Removes rows that nobody can use any more: what sign-in kept, idempotency keys, links to
// previews, samples of metrics, counts of tries. What has expired is refused, or passed over, by
// itself; this bounds the tables.
import { LONGEST_WINDOW_MS } from '../rules/metrics/recommendation.ts';
import { LONGEST_REFILL_SECONDS } from '../rules/access/throttle.ts';
import { deleteOldIdempotencyKeys } from '../store/sandboxes/idempotency.ts';
import { deleteOldMetricsSamples } from '../store/metrics/samples.ts';
import { deleteOldPreviewLinks } from '../store/previews/links.ts';
import { deleteExpired, EXPIRING_TABLES } from '../store/people/sign-in.ts';
import { deleteIdleBuckets } from '../store/access/throttle.ts';
import { deleteCapWarnings } from '../store/usage/caps.ts';
import type { ReplicaSession } from './steps/replica-session.ts';
import type { StepContext } from './steps/step-context.ts';

export const RETENTION_EVERY_MS = 60_000;
export const CAP_WARNING_RETENTION_EVERY_MS = 3_600_000;
/** Of warnings of caps: longer than any period. */
const WARNINGS_KEPT_DAYS = 400;
/** Small, so that no transaction holds many rows; many of them in one look after a burst. */
const BATCH = 500;
/** Of samples, in one look: after an upgrade there may be those of years. */
const MOST_SAMPLES = 50_000;

/** One look: removes all that has had its time, batch by batch. */
export async function removeOldRows(
  context: Pick<StepContext, 'db' | 'stopping'>,
  session: Pick<ReplicaSession, 'leads'>,
): Promise<void> {
  if (!(await session.leads('retention'))) return;
  for (const table of EXPIRING_TABLES) await inBatches(context, () => deleteExpired(context.db, table, BATCH));
  await inBatches(context, () => deleteOldIdempotencyKeys(context.db, BATCH));
  await inBatches(context, () => deleteOldPreviewLinks(context.db, BATCH));
  await inBatches(context, () => deleteIdleBuckets(context.db, LONGEST_REFILL_SECONDS, BATCH));
  await inBatches(context, () => deleteOldMetricsSamples(context.db, LONGEST_WINDOW_MS, BATCH), MOST_SAMPLES);
}

/** Removes warnings of caps that nobody is held against any more. */
export async function forgetCapWarnings(
  context: Pick<StepContext, 'db' | 'stopping'>,
  session: Pick<ReplicaSession, 'leads'>,
): Promise<void> {
  if (!(await session.leads('cap-warning-retention'))) return;
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
