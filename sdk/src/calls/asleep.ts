// Failures of requests that follow something in a sandbox, and survive its sleeps.
import { BerthError } from '../transport/errors.ts';
import type { Pauses } from '../transport/pauses.ts';
import type { Calls } from './calls.ts';
import { isOver } from './wanted-status.ts';

/** Pauses after a failure that passes, or while the sandbox is not awake. Throws others. */
export async function afterFailure(
  { raw, with: set }: Calls,
  sandboxId: string,
  failure: unknown,
  { pauses, signal }: { pauses: Pauses; signal: AbortSignal },
): Promise<void> {
  try {
    if (!(failure instanceof BerthError) || failure.code !== 'sandbox_state_conflict') throw failure;
    const { sandbox } = await raw.getSandbox({ path: { sandboxId }, ...set({ signal }) });
    if (isOver(sandbox.status)) throw failure;
    pauses.succeeded();
    await pauses.retry(failure);
  } catch (error) {
    await pauses.afterFailure(error, { isActive: false });
  }
}
