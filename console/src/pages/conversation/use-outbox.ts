// The message that is being written or sent. Kept in the tab's storage until its turn is known.
import { BerthError } from '@berth/sdk';
import { useEffect, useReducer } from 'react';
import { agentSessionQuery, heldSession, signInQuery } from '../../queries/agent-sessions.ts';
import { queries } from '../../queries/client.ts';
import { hasActiveTurn } from '../../rules/agents/conversation.ts';
import {
  EMPTY,
  nextOutbox,
  resendAfterMs,
  restoredOutbox,
  type Outbox,
  type OutboxEvent,
} from '../../rules/agents/outbox.ts';
import { pause } from '../../rules/page/pause.ts';
import { randomId } from '../../rules/random-id.ts';
import { berth } from '../../session/client.ts';

const POLL_MS = 1_000;

/** @param place of the message in the storage: person and session */
function load(place: string): Outbox {
  try {
    return restoredOutbox(sessionStorage.getItem(place));
  } catch {
    return EMPTY;
  }
}

function save(place: string, state: Outbox): void {
  try {
    if (state.text === '') sessionStorage.removeItem(place);
    else sessionStorage.setItem(place, JSON.stringify(state));
  } catch {
    // The browser blocks storage: the message lives as long as the page.
  }
}

export function useOutbox(sessionId: string, userId: string): [Outbox, (event: OutboxEvent) => void, () => void] {
  const place = `berth.outbox.${userId}.${sessionId}`;
  const [outbox, dispatch] = useReducer(nextOutbox, place, load);
  const { name, text, key } = outbox;
  const fail = (error: unknown): void => dispatch({ type: 'failed', error: error as Error });

  // Before the request: the key must outlive a page that is closed while it sends.
  useEffect(() => save(place, outbox), [place, outbox]);

  const send = (): void =>
    void queries
      .fetchQuery({ ...signInQuery, staleTime: key === null ? Infinity : 0 })
      .then((signIn) => dispatch({ type: 'send', key: randomId(), signIn }))
      .catch(fail);

  useEffect(() => {
    if (name !== 'sending') return;
    // Goes on when the page is left; its return checks.
    berth.raw
      .sendAgentMessage({ path: { sessionId }, body: { text, requestKey: key ?? '' } })
      .then(({ state }) => dispatch({ type: 'sent', state }), fail);
  }, [name, sessionId, text, key]);

  const resendMs = resendAfterMs(outbox);
  useEffect(() => {
    if (name !== 'checking') return undefined;
    const timer = setTimeout(() => {
      // Another tab may have signed in again meanwhile.
      queries
        .fetchQuery({ ...signInQuery, staleTime: 0 })
        .then((signIn) => dispatch({ type: 'resend', signIn }))
        .catch(fail);
    }, resendMs);
    return () => clearTimeout(timer);
  }, [name, resendMs]);

  useEffect(() => {
    if (name !== 'interrupting') return undefined;
    const left = new AbortController();
    interrupt(sessionId, left.signal).then(
      () => left.signal.aborted || send(),
      (error: unknown) => left.signal.aborted || fail(error),
    );
    return () => left.abort();
    // oxlint-disable-next-line react-hooks/exhaustive-deps -- `send` is of this session
  }, [name, sessionId]);

  return [outbox, dispatch, send];
}

/** Resolves when no turn is active. */
async function interrupt(sessionId: string, signal: AbortSignal): Promise<void> {
  try {
    await berth.raw.interruptAgentTurn({ path: { sessionId }, signal });
  } catch (error) {
    const isOver =
      error instanceof BerthError && ['agent_turn_not_active', 'agent_bridge_stopped'].includes(error.code);
    if (!isOver) throw error;
  }
  let session = await heldSession(sessionId, undefined, signal);
  while (hasActiveTurn(session)) {
    await pause(POLL_MS, signal);
    session = await heldSession(sessionId, session.revision, signal);
  }
  queries.setQueryData(agentSessionQuery(sessionId).queryKey, session);
}
