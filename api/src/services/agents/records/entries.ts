// Entries of agent sessions in the activity feed. Those that a guest causes without a request are
// bounded: at most one of a kind per session and minute.
import { PROMPTS_PER_MINUTE } from '@berth/contract/route/limits.ts';
import type { GuestAgentView } from '@berth/protocol/agents.ts';
import { insertActivity, type ActivityActor } from '../../../store/activity/activity.ts';
import * as sessions from '../../../store/agents/sessions.ts';
import type { AgentSessionRow } from '../../../store/agents/sessions.ts';
import { PERSON, type AgentTurnRow } from '../../../store/agents/turns.ts';
import { readClock } from '../../../store/database/clock.ts';
import type { DatabaseTransaction } from '../../../store/database/schema.ts';

export const SYSTEM: ActivityActor = { kind: 'system', id: null, userId: null };

/** Shortest time between two entries that no request came before. */
const EVERY_MS = 60_000;

type AgentEvent =
  | 'agent_session_created'
  | 'agent_session_recovered'
  | 'agent_session_stopped'
  | 'agent_message_sent'
  | 'agent_turn_ended'
  | 'agent_turn_interrupted'
  | 'agent_prompt_requested'
  | 'agent_prompt_answered';

/** Adds an entry to the feed. Details hold no text. */
export async function note(
  trx: DatabaseTransaction,
  session: Pick<AgentSessionRow, 'id' | 'org_id' | 'project_id' | 'sandbox_id'>,
  actor: ActivityActor,
  kind: AgentEvent,
  details: Record<string, unknown> = {},
): Promise<void> {
  await insertActivity(trx, {
    orgId: session.org_id,
    projectId: session.project_id,
    sandboxId: session.sandbox_id,
    actor,
    kind,
    subject: { kind: 'agent_session', id: session.id },
    details,
  });
}

interface SeenPrompt {
  /** Active turn of the prompt. */
  turn: AgentTurnRow | undefined;
  /** As shown now. */
  prompt: GuestAgentView['prompt'];
  /** Prompts that the view adds. */
  added: number;
}

/**
 * Adds an entry about the approvals since the last one. It is due at once after a request: a
 * message, or the answer to the last approval. Returns true if more were replaced within a minute
 * than a person could answer. Needs the session's lock.
 */
export async function notePrompt(
  trx: DatabaseTransaction,
  session: AgentSessionRow,
  { turn, prompt, added }: SeenPrompt,
): Promise<boolean> {
  const count = session.prompts_unnoted + added;
  if (count === 0) return false;
  const now = await readClock(trx);
  const { prompt_noted_at: noted } = session;
  const isNewTurn = noted !== null && turn !== undefined && turn.caller_kind !== PERSON && turn.created_at > noted;
  if (!isDue(noted, now) && !isNewTurn) {
    await sessions.writeEntryTimes(trx, session.id, { prompts_unnoted: count });
    return count > PROMPTS_PER_MINUTE;
  }
  await sessions.writeEntryTimes(trx, session.id, { prompt_noted_at: now, prompts_unnoted: 0 });
  const { requestId = null, turnId = turn?.id ?? null, kind: promptKind = null } = prompt ?? {};
  const details = { requestId, turnId, promptKind, ...(count === 1 ? {} : { count }) };
  await note(trx, session, SYSTEM, 'agent_prompt_requested', details);
  return false;
}

/** Adds an entry about a stop. Further ones within a minute need a recover in between. */
export async function noteStop(
  trx: DatabaseTransaction,
  session: AgentSessionRow,
  bridgeReason: GuestAgentView['bridgeReason'],
): Promise<void> {
  const now = await readClock(trx);
  if (!isDue(session.stop_noted_at, now)) return;
  await sessions.writeEntryTimes(trx, session.id, { stop_noted_at: now });
  await note(trx, session, SYSTEM, 'agent_session_stopped', { bridgeReason });
}

function isDue(noted: Date | null, now: Date): boolean {
  return noted === null || now.getTime() - noted.getTime() >= EVERY_MS;
}
