// The approval that an agent waits for. Accepting may carry out what it says, so it is shown whole
// first, and a press that was meant for something else does nothing.
import { useQuery } from '@tanstack/react-query';
import { useEffect, useState } from 'react';
import type { AgentDecision, api } from '@berth/sdk';
import { answer, answersQuery, wholeApproval } from '../../queries/agent-sessions.ts';
import { membersQuery } from '../../queries/members.ts';
import { CARD_DEAD_MS, cardKeyOf, compactLines } from '../../rules/agents/conversation.ts';
import { nameOf } from '../../rules/members.ts';
import { visibleLines, visibleText } from '../../rules/visible-text.ts';
import { conversationText as text } from '../../text/conversation.ts';
import { CallButton, useCall } from '../../ui/forms/index.ts';
import { Alert, Button, Time, Untrusted } from '../../ui/kit/index.ts';
import { useOrgInView } from '../frame/content.tsx';
import css from './agents.module.css';

/** The pending approval, or the fate of the last one that was shown. */
export function Approval({ session }: { session: api.AgentSession }) {
  const { pendingInput: pending } = session;
  const [last, setLast] = useState(pending);
  if (pending !== null && pending !== last) setLast(pending);
  if (pending !== null) return <Card key={cardKeyOf(pending)} {...{ session, pending }} />;
  if (last === null || last.turnId !== session.turnId) return null;
  return <Answered session={session} requestId={last.requestId} />;
}

function Card({ session, pending }: { session: api.AgentSession; pending: api.AgentPendingInput }) {
  const { refusalOf } = useOrgInView();
  const call = useCall();
  const [whole, setWhole] = useState<api.AgentPendingInput | null>(null);
  const shown = whole?.requestId === pending.requestId ? whole : pending;
  const armed = useArmed(cardKeyOf(shown));
  const refusal = refusalOf('agent_session.approve') ?? (shown.detail === null ? text.unread : null);
  const reasonOf = (decision: string): string | null =>
    refusal ?? (decision === 'accept' && shown.truncated ? text.detail.notWhole : null);
  return (
    <section className={css.card} aria-label={text.approval}>
      <h2>{visibleText(text.asks(session.agentLabel, pending.kind))}</h2>
      <p className={css.by}>
        <Untrusted text={session.id} /> · <Time at={pending.askedAt} />
      </p>
      {shown.title === null ? null : (
        <p dir="auto" className={css.words}>
          <strong>{visibleLines(compactLines(shown.title))}</strong>
        </p>
      )}
      {shown.workingDirectory === null ? null : (
        <p className={css.hint}>
          {text.folder} <Untrusted text={shown.workingDirectory} />
        </p>
      )}
      {shown.detail === null ? (
        <p>{text.unread}</p>
      ) : (
        <pre className={css.detail}>{visibleLines(compactLines(shown.detail))}</pre>
      )}
      {shown.truncated ? (
        <div>
          {shown === pending ? text.detail.isTruncated : text.tooLong}{' '}
          <CallButton failed={text.notRead} run={() => wholeApproval(session.id)} onDone={setWhole}>
            {text.detail.showWhole}
          </CallButton>
        </div>
      ) : null}
      <ul className={css.decisions}>
        {pending.decisions.map((decision) => (
          <li key={decision}>
            <Button
              reason={reasonOf(decision)}
              busy={!armed || call.isPending}
              onClick={() => call.run(() => answer(session.id, pending.requestId, decision as AgentDecision))}
            >
              {text.decision(decision)}
            </Button>
            <span className={css.hint}>{text.consequence(decision)}</span>
          </li>
        ))}
      </ul>
      <Alert title={text.answerFailed} error={call.error} />
    </section>
  );
}

/** False for a moment after the key has changed. */
function useArmed(key: string): boolean {
  const [armed, setArmed] = useState<string | null>(null);
  useEffect(() => {
    const timer = setTimeout(() => setArmed(key), CARD_DEAD_MS);
    return () => clearTimeout(timer);
  }, [key]);
  return armed === key;
}

function Answered({ session, requestId }: { session: api.AgentSession; requestId: number | string }) {
  const { orgId, sandboxId, id } = session;
  const { data: entries = [] } = useQuery(answersQuery(orgId, sandboxId));
  const { data: members = [] } = useQuery(membersQuery(orgId));
  const entry = entries.find(({ subject, details }) => subject.id === id && details['requestId'] === requestId);
  const userId = entry?.actor.userId ?? '';
  const answered = entry && text.answered(nameOf(members, userId) ?? userId, String(entry.details['decision']));
  return <output className={css.hint}>{answered ? <Untrusted text={answered} /> : text.withdrawn}</output>;
}
