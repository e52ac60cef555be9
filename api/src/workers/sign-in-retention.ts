// Forgets what sign-in kept and nobody can use any more: tokens, logins, codes and links whose time was up long ago, and counts of tries that do
// not count; links to previews too. What has expired is refused by itself; this bounds the tables.
import { LONGEST_REFILL_SECONDS } from '../rules/throttle.ts';
import { deleteOldPreviewLinks } from '../store/preview-links.ts';
import { deleteExpired, EXPIRING_TABLES } from '../store/sign-in.ts';
import { deleteIdleBuckets } from '../store/throttle.ts';
import type { ReplicaSession } from './replica-session.ts';
import type { StepContext } from './step-context.ts';

export const SIGN_IN_RETENTION_EVERY_MS = 60_000;
/** Small, so that no transaction holds many rows; many of them in one look after a burst. */
const BATCH = 500;

/** One look: removes all that has had its time, batch by batch. */
export async function forgetSignInRemains(
  context: Pick<StepContext, 'db' | 'stopping'>,
  session: Pick<ReplicaSession, 'leads'>,
): Promise<void> {
  if (!(await session.leads('sign-in-retention'))) return;
  for (const table of EXPIRING_TABLES) await inBatches(context, () => deleteExpired(context.db, table, BATCH));
  await inBatches(context, () => deleteOldPreviewLinks(context.db, BATCH));
  await inBatches(context, () => deleteIdleBuckets(context.db, LONGEST_REFILL_SECONDS, BATCH));
}

async function inBatches({ stopping }: Pick<StepContext, 'stopping'>, removeSome: () => Promise<number>): Promise<void> {
  let removed = BATCH;
  while (removed === BATCH && !stopping.aborted) removed = await removeSome();
}
