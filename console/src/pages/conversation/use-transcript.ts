// Follows a session whose sandbox is awake: its record by held responses, its turns and replies by
// cursors.
import { useQuery } from '@tanstack/react-query';
import { BerthError, type api } from '@berth/sdk';
import { useEffect, useState } from 'react';
import { whileInView } from '../../live/in-view.ts';
import { pause } from '../../rules/page/pause.ts';
import { Pace } from '../../live/pace.ts';
import { agentSessionQuery, heldSession, transcriptQuery } from '../../queries/agent-sessions.ts';
import { isConnectionError, queries } from '../../queries/client.ts';
import { lacksTurns, UNREAD, withReplies, withTurns, type Transcript } from '../../rules/agents/conversation.ts';
import { berth } from '../../session/client.ts';
import { connection } from '../../session/connection.ts';

/** Requests of a pass: the session, and what is new in it. */
const READS = 2;
/** Limit of the pages of a pass, for each kind: a guest may claim that there are always more. */
const PAGES = 20;
const PAGE_SIZE = 100;

/**
 * The transcript, which stays while the sandbox sleeps, and why it is not read on.
 * @param awake the sandbox is: others are not asked
 */
export function useTranscript(sessionId: string, awake: boolean): { transcript: Transcript; error: Error | null } {
  const { data: transcript } = useQuery(transcriptQuery(sessionId));
  const [error, setError] = useState<Error | null>(null);
  useEffect(() => {
    if (!awake) {
      void queries.invalidateQueries({ queryKey: agentSessionQuery(sessionId).queryKey, exact: true });
      return undefined;
    }
    const left = new AbortController();
    void whileInView(left.signal, (inView) => follow(sessionId, inView, setError));
    return () => left.abort();
  }, [sessionId, awake]);
  return { transcript, error: awake ? error : null };
}

/** Resolves when the signal aborts, or after a final error. */
async function follow(sessionId: string, signal: AbortSignal, onError: (error: Error | null) => void): Promise<void> {
  const pace = new Pace();
  let revision: string | undefined;
  while (!signal.aborted) {
    const startedMs = performance.now();
    try {
      const session = await heldSession(sessionId, revision, signal);
      queries.setQueryData(agentSessionQuery(sessionId).queryKey, session);
      const isRead = !session.communication.capabilities.includes('output') || (await readOn(session, signal));
      revision = isRead ? session.revision : undefined;
      connection.worked();
      onError(null);
      await pause(pace.after(performance.now() - startedMs, READS), signal);
    } catch (error) {
      if (signal.aborted) return;
      if (isConnectionError(error)) connection.failed();
      onError(error as Error);
      if (error instanceof BerthError && [403, 404].includes(error.status ?? 0)) return;
      revision = undefined;
      await pause(pace.afterFailure(), signal);
    }
  }
}

/** Reads what is new; false if there is more. */
async function readOn(session: api.AgentSession, signal: AbortSignal): Promise<boolean> {
  const { queryKey } = transcriptQuery(session.id);
  const path = { sessionId: session.id };
  let transcript = queries.getQueryData(queryKey) ?? UNREAD;
  const from = (after: string | undefined) => ({ limit: PAGE_SIZE, ...(after === undefined ? {} : { after }) });
  let more = { turns: lacksTurns(transcript, session), replies: true };
  for (let count = 0; count < PAGES && (more.turns || more.replies); count += 1) {
    if (more.turns) {
      const page = await berth.raw.listAgentTurns({ path, query: from(transcript.turnsAfter), signal });
      transcript = withTurns(transcript, page);
      more = { ...more, turns: page.hasMore };
    } else {
      const page = await berth.raw.getAgentOutput({ path, query: from(transcript.repliesAfter), signal });
      if (page.messages.length > 0) transcript = withReplies(transcript, page);
      more = { ...more, replies: page.hasMore };
    }
    queries.setQueryData(queryKey, transcript);
  }
  return !more.turns && !more.replies;
}
