// Agent sessions of the person, in all orgs. Reading them wakes no sandbox.
import { infiniteQueryOptions, queryOptions } from '@tanstack/react-query';
import type { AgentDecision, api } from '@berth/sdk';
import { HOLD_SECONDS } from '@berth/sdk/limits';
import { byAskedAt, UNREAD, type Transcript } from '../rules/agents/conversation.ts';
import { berth } from '../session/client.ts';
import { agentsText } from '../text/agents.ts';
import { change } from './client.ts';
import { pagedQuery } from './paged.ts';

const PAGE_SIZE = 50;
const LONGEST_PAGE = 100;
const MOST_WAITING = 500;
/** The feed covers the org in view only. */
const POLL_MS = 90_000;

export interface SessionFilter {
  orgId?: string;
  projectId?: string;
  sandboxId?: string;
}

const keyOf = (filter: SessionFilter) =>
  filter.sandboxId === undefined
    ? ['agent-sessions', 'list', filter]
    : ['sandboxes', filter.sandboxId, 'agents', filter];

export const agentSessionsQuery = (filter: SessionFilter) =>
  infiniteQueryOptions({
    ...pagedQuery(
      keyOf(filter),
      (page, signal) => berth.raw.listAgentSessions({ query: { ...filter, ...page, limit: PAGE_SIZE }, signal }),
      ({ sessions }) => sessions,
    ),
    refetchInterval: POLL_MS,
  });

/** Sessions that wait for a person, the longest first. */
export const inboxQuery = queryOptions({
  queryKey: ['agent-sessions', 'inbox'],
  queryFn: async ({ signal }) => {
    const found: api.AgentSession[] = [];
    for await (const { data } of berth.agents.all({ needsYou: true, limit: LONGEST_PAGE }, { signal })) {
      found.push(data);
      if (found.length >= MOST_WAITING) break;
    }
    return found.toSorted(byAskedAt);
  },
  refetchInterval: POLL_MS,
});

export async function startSession(sandboxId: string): Promise<string> {
  return (await change(berth.agents.start(sandboxId), keyOf({ sandboxId }))).id;
}

export const agentSessionQuery = (sessionId: string) =>
  queryOptions({
    queryKey: ['agent-sessions', sessionId],
    queryFn: ({ signal }) => berth.raw.getAgentSession({ path: { sessionId }, signal }),
  });

/** Held until the session differs from the revision; at once without one. */
export const heldSession = (
  sessionId: string,
  revision: string | undefined,
  signal: AbortSignal,
): Promise<api.AgentSession> =>
  berth.raw.getAgentSession({
    ...{ path: { sessionId }, signal },
    ...(revision === undefined ? {} : { query: { revision }, headers: { Prefer: `wait=${HOLD_SECONDS.max}` } }),
  });

/** Text read of a conversation, written by the page that follows it. */
export const transcriptQuery = (sessionId: string) =>
  queryOptions({
    queryKey: ['agent-transcripts', sessionId],
    queryFn: (): Transcript => UNREAD,
    initialData: UNREAD,
    enabled: false,
    staleTime: Infinity,
    structuralSharing: false,
  });

const changeSession = <T>(sessionId: string, request: Promise<T>) =>
  change(request, agentSessionQuery(sessionId).queryKey);

export const answer = (sessionId: string, requestId: number | string, decision: AgentDecision) =>
  changeSession(sessionId, berth.raw.answerAgentPrompt({ path: { sessionId }, body: { requestId, decision } }));

/** The approval with its whole detail. */
export async function wholeApproval(sessionId: string): Promise<api.AgentPendingInput | null> {
  return (await berth.raw.getAgentSession({ path: { sessionId }, query: { detail: 'full' } })).pendingInput;
}

export const interrupt = (sessionId: string) =>
  changeSession(sessionId, berth.raw.interruptAgentTurn({ path: { sessionId } }));

export const recover = (sessionId: string) =>
  changeSession(
    sessionId,
    berth.agents.get(sessionId).then((session) => session.recover()),
  );

/** Answers to the approvals of a sandbox, newest first, with their authors. */
export const answersQuery = (orgId: string, sandboxId: string) =>
  queryOptions({
    queryKey: ['orgs', orgId, 'activity', 'answers', sandboxId],
    queryFn: async ({ signal }) => {
      const query = { sandboxId, kind: 'agent_prompt_answered', limit: PAGE_SIZE } as const;
      return (await berth.raw.listActivity({ path: { orgId }, query, signal })).activity;
    },
  });

/** Id of this page's sign-in, by which the service keeps the keys of messages. */
export const signInQuery = queryOptions({
  queryKey: ['me', 'sign-in'],
  queryFn: async ({ signal }) => {
    for (let after: string | undefined; ;) {
      const query = { limit: LONGEST_PAGE, ...(after === undefined ? {} : { after }) };
      const page = await berth.raw.listSignIns({ query, signal });
      const current = page.signIns.find((one) => one.current);
      if (current !== undefined) return current.id;
      if (page.nextCursor === null) throw new Error(agentsText.noSignIn);
      after = page.nextCursor;
    }
  },
  staleTime: Infinity,
});
