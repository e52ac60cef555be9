// Holds a request, up to a limit, until the transition it started is done. Never does the work: a
// worker does, in this or another replica.
import { TRANSITION_WAIT_MS } from '@berth/contract/route/limits.ts';
import { SANDBOX_STATES } from '@berth/contract/sandboxes/state.ts';
import type { ChangeWatch } from '../../store/database/changes.ts';
import { findSandbox } from '../../store/sandboxes/sandboxes.ts';
import type { SandboxRow } from '../../store/database/schema.ts';
import type { ServiceContext } from '../context/context.ts';

/** The caller's preference for the response to a transition. */
export interface TransitionAnswer {
  /** `Prefer: respond-async`: respond at once. */
  respondAsync: boolean;
  /** Aborted if the caller disconnects; the transition continues. */
  signal: AbortSignal;
}

/**
 * The sandbox once no transition is in progress, or its state at the timeout or when the caller
 * disconnects. Open the watch before committing the change, to miss no notice.
 */
export async function waitUntilSettled(
  context: ServiceContext,
  watch: ChangeWatch,
  sandbox: SandboxRow,
  answer: TransitionAnswer,
): Promise<SandboxRow> {
  if (answer.respondAsync) return sandbox;
  return await waitWhileInTransition(
    context,
    watch,
    sandbox,
    AbortSignal.any([answer.signal, AbortSignal.timeout(TRANSITION_WAIT_MS)]),
  );
}

/**
 * The same with the caller's deadline: the sandbox once no transition is in progress, or its state
 * when the signal aborts.
 */
export async function waitWhileInTransition(
  context: ServiceContext,
  watch: ChangeWatch,
  sandbox: SandboxRow,
  signal: AbortSignal,
): Promise<SandboxRow> {
  let latest = sandbox;
  while (isInTransition(latest) && !signal.aborted) {
    await watch.next(signal);
    latest = (await findSandbox(context.db, sandbox.id)) ?? latest;
  }
  return latest;
}

function isInTransition(sandbox: SandboxRow): boolean {
  return !SANDBOX_STATES[sandbox.status].settled || sandbox.resizing;
}
