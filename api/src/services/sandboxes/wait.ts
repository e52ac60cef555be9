// Holds a request, bounded, until what it started is done. It never does the work itself: the
// worker does, here or in another replica.
import { TRANSITION_WAIT_MS } from '@berth/contract/route/limits.ts';
import { SANDBOX_STATES } from '@berth/contract/sandboxes/state.ts';
import type { SandboxWatch } from '../../store/sandboxes/changes.ts';
import { findSandbox } from '../../store/sandboxes/sandboxes.ts';
import type { SandboxRow } from '../../store/database/schema.ts';
import type { ServiceContext } from '../context/context.ts';

/** How a caller wants a transition answered. */
export interface TransitionAnswer {
  /** `Prefer: respond-async`: answer at once. */
  respondAsync: boolean;
  /** Aborted when the caller went away; the transition goes on. */
  signal: AbortSignal;
}

/**
 * The sandbox once nothing is under way for it, or as it is when the time is up or the caller gone.
 * The watch was opened before the change was committed, so that no notice is missed.
 */
export async function waitUntilSettled(
  context: ServiceContext,
  watch: SandboxWatch,
  sandbox: SandboxRow,
  answer: TransitionAnswer,
): Promise<SandboxRow> {
  if (answer.respondAsync) return sandbox;
  return await waitWhileUnderWay(
    context,
    watch,
    sandbox,
    AbortSignal.any([answer.signal, AbortSignal.timeout(TRANSITION_WAIT_MS)]),
  );
}

/**
 * The same with a deadline of the caller's own: the sandbox once nothing is under way for it, or as
 * it is when the signal aborts.
 */
export async function waitWhileUnderWay(
  context: ServiceContext,
  watch: SandboxWatch,
  sandbox: SandboxRow,
  signal: AbortSignal,
): Promise<SandboxRow> {
  let latest = sandbox;
  while (isUnderWay(latest) && !signal.aborted) {
    await watch.next(signal);
    latest = (await findSandbox(context.db, sandbox.id)) ?? latest;
  }
  return latest;
}

function isUnderWay(sandbox: SandboxRow): boolean {
  return !SANDBOX_STATES[sandbox.status].settled || sandbox.resizing;
}
