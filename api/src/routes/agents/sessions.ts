// Wire format of agent sessions.
import {
  answerAgentPrompt,
  getAgentOutput,
  interruptAgentTurn,
  listAgentTurns,
  sendAgentMessage,
  type AgentTurnWithMessage,
} from '@berth/contract/agents/conversation.ts';
import {
  agentDecision,
  AGENT_LABELS,
  createAgentSession,
  getAgentSession,
  listAgentSessions,
  recoverAgentSession,
  type AgentSession,
  type AgentTurn,
} from '@berth/contract/agents/sessions.ts';
import { capabilitiesOf, communicationStatusOf, shownBridgeState } from '@berth/contract/agents/state.ts';
import * as conversation from '../../services/agents/conversation.ts';
import * as messages from '../../services/agents/messages.ts';
import * as sessions from '../../services/agents/sessions.ts';
import type { SessionDetail, ShownSessionRow } from '../../services/agents/sessions.ts';
import { bind } from '../../call/bind.ts';

export const agentSessionRoutes = [
  bind(createAgentSession, async (context, { actor, sandbox, signal }) =>
    viewDetail(await sessions.createAgentSession(context, actor, sandbox, signal)),
  ),
  bind(listAgentSessions, async (context, { actor, query }) => {
    const { rows, nextCursor } = await sessions.listAgentSessions(context, actor, query);
    return { sessions: rows.map((row) => viewSession(row, null)), nextCursor, hasMore: nextCursor !== null };
  }),
  bind(getAgentSession, async (context, { sandbox, session, query, holdMs, signal }) => {
    const { revision, detail } = query;
    const options = { revision, detail, holdMs, signal };
    return viewDetail(await sessions.getAgentSession(context, { sandbox, session }, options));
  }),
  bind(recoverAgentSession, async (context, { actor, sandbox, session, signal }) =>
    viewDetail(await sessions.recoverAgentSession(context, actor, { sandbox, session }, signal)),
  ),
  bind(sendAgentMessage, async (context, { actor, sandbox, session, body, signal }) =>
    messages.sendAgentMessage(context, actor, { sandbox, session }, body, signal),
  ),
  bind(getAgentOutput, async (context, { sandbox, session, query, holdMs, signal }) => {
    const page = await conversation.readOutput(context, { sandbox, session }, query, { holdMs, signal });
    const { replies, nextCursor, hasMore } = page;
    return {
      messages: replies.map(({ seq, turnId, atUnixMs, text, truncated }) => {
        return { seq, turnId, at: instant(atUnixMs), text, truncated };
      }),
      nextCursor,
      hasMore,
    };
  }),
  bind(listAgentTurns, async (context, { sandbox, session, query, signal }) => {
    const { turns, nextCursor, hasMore } = await conversation.readTurns(context, { sandbox, session }, query, signal);
    return { turns: turns.map(viewTurnText), nextCursor, hasMore };
  }),
  bind(answerAgentPrompt, async (context, { actor, sandbox, session, body, signal }) => {
    const { repeated, turn } = await conversation.answerPrompt(context, actor, { sandbox, session }, body, signal);
    return {
      ...body,
      repeated,
      turnId: turn?.turnId ?? null,
      turnState: turn === null ? null : shownState(turn.state),
    };
  }),
  bind(interruptAgentTurn, async (context, { actor, sandbox, session, signal }) => {
    const { turnId, state } = await conversation.interruptTurn(context, actor, { sandbox, session }, signal);
    return { turnId, state: shownState(state) };
  }),
];

/** The guest's `void` is a turn that was not delivered. */
function shownState<State extends string>(state: State | 'void'): Exclude<State, 'void'> | 'failed' {
  return state === 'void' ? 'failed' : (state as Exclude<State, 'void'>);
}

function instant(unixMs: number): string {
  return new Date(unixMs).toISOString();
}

function viewDetail({ row, recentTurns, prompt }: SessionDetail): AgentSession {
  return {
    ...viewSession(row, prompt),
    recentTurns: recentTurns.map((turn): AgentTurn => ({
      turnId: turn.id,
      state: turn.state,
      reason: turn.reason,
      startedAt: (turn.started_at ?? turn.created_at).toISOString(),
      endedAt: turn.ended_at?.toISOString() ?? null,
    })),
  };
}

function viewSession(row: ShownSessionRow, prompt: SessionDetail['prompt']): AgentSession {
  const facts = {
    agent: row.agent,
    surface: row.surface,
    conversation: row.conversation,
    bridge: row.bridge_state,
    sandboxStatus: row.sandbox_status,
    turn: row.turn_state,
  };
  const pendingInput = viewPrompt(row, prompt);
  return {
    id: row.id,
    orgId: row.org_id,
    projectId: row.project_id,
    sandboxId: row.sandbox_id,
    endUserId: row.end_user_id,
    agent: row.agent,
    agentLabel: AGENT_LABELS[row.agent],
    surface: row.surface,
    sandboxStatus: row.sandbox_status,
    bridgeState: shownBridgeState(facts),
    bridgeVersion: row.bridge_version,
    bridgeReason: row.bridge_reason,
    turnId: row.turn_id,
    turnState: row.turn_state,
    turnReason: row.turn_reason,
    turnStartedAt: row.turn_started_at?.toISOString() ?? null,
    turnEndedAt: row.turn_ended_at?.toISOString() ?? null,
    needsYou: pendingInput !== null,
    waitingOn: pendingInput === null ? null : 'approval',
    pendingInput,
    communication: { status: communicationStatusOf(facts), capabilities: capabilitiesOf(facts) },
    revision: sessions.revisionOf(row),
    stateAt: row.state_at.toISOString(),
    createdAt: row.created_at.toISOString(),
    updatedAt: row.updated_at.toISOString(),
  };
}

function viewPrompt(row: ShownSessionRow, text: SessionDetail['prompt']): AgentSession['pendingInput'] {
  const { prompt_id: id, prompt_kind: kind, prompt_turn_id: turnId, prompt_asked_at: askedAt } = row;
  if (id === null || kind === null || turnId === null || askedAt === null) return null;
  const requestId = Number(id);
  const shown = text?.requestId === requestId ? text : null;
  return {
    requestId,
    turnId,
    kind,
    askedAt: askedAt.toISOString(),
    decisions: [...agentDecision.options],
    title: shown?.title ?? null,
    detail: shown?.detail ?? null,
    truncated: shown?.truncated ?? false,
    workingDirectory: shown?.workingDirectory ?? null,
  };
}

function viewTurnText(turn: Awaited<ReturnType<typeof conversation.readTurns>>['turns'][number]): AgentTurnWithMessage {
  const { turnId, number, text, state, reason, startedUnixMs, endedUnixMs } = turn;
  return {
    turnId,
    number,
    text,
    state: shownState(state),
    reason,
    startedAt: instant(startedUnixMs),
    endedAt: endedUnixMs === null ? null : instant(endedUnixMs),
    author: readAuthor(turn.author),
  };
}

/** The guest keeps the author as text, and may change it. */
function readAuthor(text: string): AgentTurnWithMessage['author'] {
  try {
    const { kind, userId } = JSON.parse(text) as Record<string, unknown>;
    return typeof kind === 'string' && typeof userId === 'string' ? { kind, userId } : null;
  } catch {
    return null;
  }
}
