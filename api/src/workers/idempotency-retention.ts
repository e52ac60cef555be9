// Forgets idempotency keys that no longer count. How long they do is said in the contract; the lookup itself passes over older ones.
import { deleteOldIdempotencyKeys } from '../store/idempotency.ts';
import type { ReplicaSession } from './replica-session.ts';
import type { StepContext } from './step-context.ts';

export const IDEMPOTENCY_RETENTION_EVERY_MS = 60_000;
/** Small, so that no transaction holds many rows; many of them in one look after a burst. */
const BATCH = 500;

/** One look: removes all that are too old, batch by batch. */
export async function forgetIdempotencyKeys(
  context: Pick<StepContext, 'db' | 'stopping'>,
  session: Pick<ReplicaSession, 'leads'>,
): Promise<void> {
  if (!(await session.leads('idempotency-retention'))) return;
  let removed = BATCH;
  while (removed === BATCH && !context.stopping.aborted) removed = await deleteOldIdempotencyKeys(context.db, BATCH);
}
