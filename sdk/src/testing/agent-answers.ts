// Agent session handlers of the test server, following the contract.
import { AGENT_OUTPUT_PAGE, AGENT_SESSIONS_PAGE } from '../generated/limits.ts';
import { TestAgentSession } from './agent.ts';
import { note, type Answers, type RequestContext } from './answering.ts';
import { hold } from './hold.ts';
import { newestFirst, paged } from './requests/paged.ts';
import { Refusal } from './requests/refusal.ts';
import type { TestCall } from './requests/request.ts';
import { awakeSandbox } from './sandbox-answers.ts';

export const AGENT_ANSWERS: Answers = {
  createAgentSession: ({ params }, about) => {
    const { state, now } = about;
    const { record } = awakeSandbox('agent_session', params, about);
    const asks = state.project(record.projectId).agentApprovals !== 'never';
    const session = new TestAgentSession({ sandbox: record, asks, now, onChange: () => state.changed() });
    state.agentSessions.set(session.id, session);
    noteSession(about, 'agent_session_created', session);
    return session.view('short');
  },
  listAgentSessions: ({ query }, { state }) => {
    const { orgId, projectId, sandboxId, needsYou, ...page } = query;
    if (orgId !== undefined) state.requireOrg(orgId as string);
    const shown = newestFirst([...state.agentSessions.values()])
      .map((session) => session.view())
      .filter(
        (one) =>
          (projectId === undefined || one.projectId === projectId) &&
          (sandboxId === undefined || one.sandboxId === sandboxId) &&
          (needsYou === undefined || String(one.needsYou) === needsYou),
      );
    return paged('sessions', shown, { limit: AGENT_SESSIONS_PAGE.default, ...page });
  },
  getAgentSession: async (call, about) => {
    const session = find(call, about);
    const { detail, revision = session.revision } = call.query;
    const { status } = session.view().communication;
    if (status === 'busy' || (status !== 'asleep' && call.query['revision'] !== undefined))
      await hold(call, about, () => session.revision !== revision);
    return session.view(detail as 'short' | 'full');
  },
  recoverAgentSession: (call, about) => {
    const session = findAwake(call, about);
    session.recover();
    noteSession(about, 'agent_session_recovered', session);
    return session.view('short');
  },
  sendAgentMessage: (call, about) => {
    const session = find(call, about);
    awakeSandbox('agent_session', { sandboxId: session.sandbox.id }, about);
    const { caller, state } = about;
    const sender = { kind: caller?.kind ?? '', userId: state.userId, key: caller?.keyId ?? '' };
    const { turn, isNew } = session.send(call.body, sender, about.agent);
    if (isNew) noteSession(about, 'agent_message_sent', session);
    return { turnId: turn.turnId, state: turn.state, ...(isNew ? {} : { replayed: true }) };
  },
  getAgentOutput: async (call, about) => {
    const session = findAwake(call, about);
    const after = numberOf('output', session.id, call.query['after']);
    const behind = () => session.replies.filter(({ seq }) => seq > after);
    await hold(call, about, () => behind().length > 0);
    const { page: messages, hasMore } = firstOf(behind(), call.query['limit']);
    return { messages, nextCursor: cursorOf('output', session.id, messages.at(-1)?.seq ?? after), hasMore };
  },
  listAgentTurns: (call, about) => {
    const session = findAwake(call, about);
    const after = numberOf('turns', session.id, call.query['after']);
    const { page, hasMore } = firstOf(session.turns.slice(after), call.query['limit']);
    const turns = page.map(({ turnId, number, text, author, state, reason, startedAt, endedAt }) => {
      return { turnId, number, text, author, state, reason, startedAt, endedAt };
    });
    return { turns, nextCursor: cursorOf('turns', session.id, turns.at(-1)?.number ?? after), hasMore };
  },
  answerAgentPrompt: (call, about) => {
    const session = findAwake(call, about);
    const { requestId, decision } = call.body;
    const { repeated, turn } = session.answer(requestId, decision);
    noteSession(about, 'agent_prompt_answered', session);
    return { requestId, decision, repeated, turnId: turn?.turnId ?? null, turnState: turn?.state ?? null };
  },
  interruptAgentTurn: (call, about) => {
    const session = findAwake(call, about);
    const { turnId, state } = session.interrupt();
    noteSession(about, 'agent_turn_interrupted', session);
    return { turnId, state };
  },
};

function find({ params }: TestCall, { state, nowMs }: RequestContext): TestAgentSession {
  const session = state.agentSessions.get(params['sessionId'] ?? '');
  if (session === undefined) throw new Refusal('agent_session_not_found');
  if (state.sandbox(session.sandbox.id, nowMs).status === 'deleted') session.stop('machine_lost');
  return session;
}

/** The session of an awake sandbox; wakes nothing. */
function findAwake(call: TestCall, about: RequestContext): TestAgentSession {
  const session = find(call, about);
  about.state.sandbox(session.sandbox.id, about.nowMs).allows('agent_session', 'a call of the agent');
  return session;
}

function firstOf<T>(all: readonly T[], limit: unknown): { page: T[]; hasMore: boolean } {
  const page = all.slice(0, Number(limit ?? AGENT_OUTPUT_PAGE.default));
  return { page, hasMore: page.length < all.length };
}

function cursorOf(list: string, sessionId: string, number: number): string {
  return btoa(`${list}.${sessionId}.${number}`);
}

function numberOf(list: string, sessionId: string, cursor: unknown): number {
  if (typeof cursor !== 'string') return 0;
  const number = Number(/\.(\d+)$/.exec(decoded(cursor))?.[1]);
  if (cursorOf(list, sessionId, number) === cursor) return number;
  throw new Refusal('invalid_request', 'query.after must be the nextCursor of an earlier page of this list');
}

function decoded(cursor: string): string {
  try {
    return atob(cursor);
  } catch {
    return '';
  }
}

function noteSession(about: RequestContext, kind: string, { id, sandbox }: TestAgentSession): void {
  note(about, kind, { kind: 'agent_session', id }, sandbox);
}
