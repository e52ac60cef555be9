// Effect of a guest's report on the recorded state of a turn. Pure. The guest is hostile: a turn
// never leaves a final state, and takes only steps of the contract's table.
import { TURN_STATES, type TurnReason, type TurnState } from '@berth/contract/agents/state.ts';
import type { GuestTurn } from '@berth/protocol/agents.ts';

export interface TurnOutcome {
  state: TurnState;
  reason: TurnReason | null;
}

interface RecordedTurn {
  state: TurnState;
  run_id: string | null;
}

/**
 * The next state of a recorded turn; null for no change.
 * @param seen the turn in the guest; null: the guest never took it; undefined: not asked
 * @param runId run of the guest that reported
 */
export function turnAfter(
  recorded: RecordedTurn,
  seen: GuestTurn | null | undefined,
  runId: string,
): TurnOutcome | null {
  const outcome = outcomeOf(recorded, seen, runId);
  return outcome !== null && TURN_STATES[recorded.state].next.includes(outcome.state) ? outcome : null;
}

function outcomeOf(recorded: RecordedTurn, seen: GuestTurn | null | undefined, runId: string): TurnOutcome | null {
  if (seen == null) {
    // Another run has lost its turns; their outcome is unknown.
    if (recorded.run_id !== null && recorded.run_id !== runId) return { state: 'failed', reason: 'machine_lost' };
    if (seen === undefined || recorded.state === 'sending') return null;
    return { state: 'failed', reason: 'bridge_ended' };
  }
  if (seen.state === 'void') return { state: 'failed', reason: 'not_delivered' };
  if (seen.state === 'failed') return { state: 'failed', reason: seen.reason ?? 'agent_error' };
  return { state: seen.state, reason: null };
}

/** Position of a guest's view; a later one of the same run has a higher revision. */
interface ViewPosition {
  epoch: number;
  runId: string | null;
  revision: number;
}

/** True if the view is newer than the recorded one. Runs are ordered by the sandbox's epoch. */
export function isNewer(view: ViewPosition, recorded: ViewPosition): boolean {
  if (view.epoch < recorded.epoch) return view.runId === recorded.runId && view.revision > recorded.revision;
  return view.runId !== recorded.runId || view.revision > recorded.revision;
}
