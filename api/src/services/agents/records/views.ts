// Writes the views of guests into the rows of agent sessions and turns, with their events. The only
// writer of states that a guest reports.
import { TURN_STATES } from '@berth/contract/agents/state.ts';
import { AGENT_TURNS_KEPT } from '@berth/contract/route/limits.ts';
import type { GuestAgentView, GuestTurn } from '@berth/protocol/agents.ts';
import { isNewer, turnAfter, type TurnOutcome } from '../../../rules/agents/turn.ts';
import type { ActivityActor } from '../../../store/activity/activity.ts';
import * as sessions from '../../../store/agents/sessions.ts';
import type { AgentSessionRow } from '../../../store/agents/sessions.ts';
import * as store from '../../../store/agents/turns.ts';
import { PERSON, type AgentTurnRow } from '../../../store/agents/turns.ts';
import type { Database, DatabaseTransaction } from '../../../store/database/schema.ts';
import { note, notePrompt, noteStop, SYSTEM } from './entries.ts';

/** A view as received, with the epoch of the sandbox at the call. */
export interface ReceivedView {
  epoch: number;
  view: GuestAgentView;
  /** Turns known beside the view's: null for a turn that the guest never took. */
  turns?: ReadonlyMap<string, GuestTurn | null>;
  /** Last turns of the guest, newest first. */
  recentTurns?: readonly GuestTurn[];
  /** Caller of the message whose delivery this view reports. */
  sender?: { turnId: string; actor: ActivityActor };
  /** Caller of the create whose response this view is. */
  creator?: ActivityActor;
}

/** Records the view. Does nothing for a session that is gone. */
export async function recordView(db: Database, sessionId: string, received: ReceivedView): Promise<void> {
  await db.transaction().execute((trx) => recordViewIn(trx, sessionId, received));
}

export async function recordViewIn(trx: DatabaseTransaction, sessionId: string, received: ReceivedView): Promise<void> {
  const session = await sessions.lockAgentSession(trx, sessionId);
  if (session === undefined || session.gone_at !== null) return;
  const { epoch, view } = received;
  const position = {
    epoch: session.view_epoch,
    runId: session.view_run_id,
    revision: Number(session.view_revision),
  };
  const isNews = isNewer({ epoch, runId: view.runId, revision: view.revision }, position);
  const seen = isNews && session.surface === 'terminal' ? await addPersonsTurns(trx, session, received) : [];
  const known = new Map([...seen.map((one) => [one.turnId, one] as const), ...(received.turns ?? [])]);
  const changed = await recordTurns(trx, session, { ...received, turns: known });
  let { prompt } = view;
  // Only an active turn of a session that runs can wait for an answer.
  const active = prompt === null ? [] : await store.listActiveTurns(trx, sessionId);
  const turn = active.find(({ id }) => id === prompt?.turnId);
  if (turn === undefined || view.bridge === 'stopped') prompt = null;
  if (!isNews) {
    if (changed !== null) await sessions.writeAgentSession(trx, sessionId, { turn_id: changed });
    else await sessions.touchAgentSession(trx, sessionId, view.signs);
    if (session.prompts_unnoted > 0) await notePrompt(trx, session, { turn, prompt, added: 0 });
    return;
  }
  if (session.view_run_id === null) await recordCreate(trx, session, view, received.creator);
  const isNew = prompt !== null && String(prompt.requestId) !== session.prompt_id;
  const isFlooded = await notePrompt(trx, session, { turn, prompt, added: isNew ? 1 : 0 });
  if (isFlooded && turn !== undefined) {
    await recordTurn(trx, session, turn, { state: 'failed', reason: 'agent_error' });
    prompt = null;
  }
  if (view.bridge === 'stopped' && session.bridge_state === 'ready') await noteStop(trx, session, view.bridgeReason);
  await sessions.writeSessionView(trx, sessionId, {
    bridge_state: view.bridge,
    bridge_version: view.bridgeVersion,
    bridge_reason: view.bridge === 'stopped' ? view.bridgeReason : null,
    conversation: session.surface === 'terminal' ? (view.conversation ?? null) : null,
    ...(changed === null ? {} : { turn_id: changed }),
    prompt_id: prompt?.requestId ?? null,
    prompt_kind: prompt?.kind ?? null,
    prompt_turn_id: prompt?.turnId ?? null,
    prompt_asked_at: prompt === null ? null : new Date(prompt.askedUnixMs),
    last_seq: view.lastSeq,
    signs: view.signs,
    view_epoch: Math.max(epoch, session.view_epoch),
    view_run_id: view.runId,
    view_revision: view.revision,
  });
}

/**
 * Adds rows of the turns that people began in the terminal since the newest row; returns these
 * turns. The guest is hostile: rows stay within those kept of a session.
 */
async function addPersonsTurns(
  trx: DatabaseTransaction,
  session: AgentSessionRow,
  { view, recentTurns = [] }: ReceivedView,
): Promise<GuestTurn[]> {
  const turns = [...(view.turn === null ? [] : [view.turn]), ...recentTurns];
  const known = await store.findTurnIds(
    trx,
    turns.map(({ turnId }) => turnId),
  );
  const newest = turns.findIndex(({ turnId }) => known.has(turnId));
  const added = new Map(
    turns
      .slice(0, newest < 0 ? turns.length : newest)
      .filter(({ isPersons, state }) => isPersons === true && state !== 'void')
      .map((turn) => [turn.turnId, turn]),
  );
  const oldestFirst = [...added.values()].toReversed();
  for (const { turnId: id } of oldestFirst) {
    const at = { sessionId: session.id, sandboxId: session.sandbox_id, runId: view.runId };
    await store.insertPersonsTurn(trx, { id, ...at });
  }
  if (added.size > 0) await store.deleteSurplusTurns(trx, session.id, AGENT_TURNS_KEPT.perSession);
  return oldestFirst;
}

/** Records what happened to active turns. Returns the latest one that changed, or null. */
async function recordTurns(
  trx: DatabaseTransaction,
  session: AgentSessionRow,
  { view, turns: known, sender }: ReceivedView,
): Promise<string | null> {
  let changed: string | null = null;
  for (const turn of await store.listActiveTurns(trx, session.id)) {
    const seen = known?.get(turn.id) ?? (view.turn?.turnId === turn.id ? view.turn : known?.get(turn.id));
    const outcome = turnAfter(turn, seen, view.runId);
    if (outcome === null) continue;
    await recordTurn(trx, session, turn, outcome, sender?.turnId === turn.id ? sender.actor : undefined);
    changed = turn.id;
  }
  return changed;
}

/** Writes the outcome with its events. Needs the session's lock. */
export async function recordTurn(
  trx: DatabaseTransaction,
  session: Pick<AgentSessionRow, 'id' | 'org_id' | 'project_id' | 'sandbox_id'>,
  turn: AgentTurnRow,
  outcome: TurnOutcome,
  sender?: ActivityActor,
): Promise<void> {
  const ended = !TURN_STATES[outcome.state].active;
  const after = await store.writeTurn(trx, turn.id, { ...outcome, ended });
  // A guest could report any number of them.
  if (turn.caller_kind === PERSON) return;
  const undelivered = outcome.reason === 'not_delivered';
  if (turn.state === 'sending' && !undelivered)
    await note(trx, session, sender ?? senderOf(turn), 'agent_message_sent', { turnId: turn.id });
  if (!ended || undelivered) return;
  const { started_at: startedAt, ended_at: endedAt } = after;
  const seconds = Math.round(((endedAt?.getTime() ?? 0) - (startedAt?.getTime() ?? 0)) / 1_000);
  const details = { turnId: turn.id, state: outcome.state, turnReason: outcome.reason, seconds };
  await note(trx, session, SYSTEM, 'agent_turn_ended', details);
}

/** The caller of a create whose call no longer runs. */
function creatorOf({ creator_kind: kind, creator_id: id, created_by: userId }: AgentSessionRow): ActivityActor {
  if (kind === null || id === null || userId === null) return SYSTEM;
  return { kind: kind as 'session' | 'api_key' | 'agent_token', id, userId, requestId: null };
}

/** The caller of a turn whose call no longer runs. */
function senderOf(turn: AgentTurnRow): ActivityActor {
  return {
    kind: turn.caller_kind as 'session' | 'api_key' | 'agent_token',
    id: turn.caller_id,
    userId: turn.caller_user_id,
    requestId: null,
  };
}

/** Records the create with the first view: the response to its call may be lost. */
async function recordCreate(
  trx: DatabaseTransaction,
  session: AgentSessionRow,
  { bridge, bridgeReason }: GuestAgentView,
  creator: ActivityActor = creatorOf(session),
): Promise<void> {
  const { agent, surface } = session;
  const isRefused = bridge === 'stopped' && bridgeReason === 'not_ready';
  await note(trx, session, creator, 'agent_session_created', {
    agent,
    ...(surface === 'terminal' ? { surface } : {}),
    ...(isRefused ? { refused: 'agent_not_ready' } : {}),
  });
}

/** Ends the active turns of a sandbox whose VM is lost. Needs the sandbox's lock. */
export async function loseTurns(trx: DatabaseTransaction, sandboxId: string): Promise<void> {
  const live = new Map((await sessions.listLiveSessions(trx, sandboxId)).map((session) => [session.id, session]));
  for (const session of live.values()) await sessions.lockAgentSession(trx, session.id);
  for (const turn of await store.lockActiveTurnsOf(trx, sandboxId)) {
    const session = live.get(turn.session_id);
    if (session === undefined) continue;
    await recordTurn(trx, session, turn, { state: 'failed', reason: 'machine_lost' });
    await sessions.writeAgentSession(trx, session.id, { turn_id: turn.id });
  }
}
