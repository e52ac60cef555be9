// A conversation with the coding agent of a sandbox.
import { useQuery } from '@tanstack/react-query';
import { useMemo } from 'react';
import { Link, useParams } from 'react-router';
import type { api } from '@berth/sdk';
import { agentSessionQuery } from '../../queries/agent-sessions.ts';
import { membersQuery } from '../../queries/members.ts';
import { meQuery } from '../../queries/orgs.ts';
import { sandboxQuery } from '../../queries/sandboxes.ts';
import { shownTurns } from '../../rules/agents/conversation.ts';
import { PATHS } from '../../rules/paths.ts';
import { phaseOf } from '../../rules/terminal/attachment.ts';
import { visibleText } from '../../rules/visible-text.ts';
import { agentsText } from '../../text/agents.ts';
import { conversationText as text } from '../../text/conversation.ts';
import { en } from '../../text/en.ts';
import { Alert, Button, Facts, Page, Untrusted } from '../../ui/kit/index.ts';
import { InOrg, Loaded } from '../frame/content.tsx';
import { ActionButton } from '../sandboxes/action-button.tsx';
import { InSandbox } from '../sandboxes/in-view.tsx';
import { Approval } from '../agents/approval.tsx';
import { Composer } from './composer.tsx';
import { RecoverButton } from './composer.tsx';
import { Turn } from './turns.tsx';
import { useFollowEnd } from './use-follow-end.ts';
import { useTranscript } from './use-transcript.ts';
import sandboxCss from '../sandboxes/sandbox.module.css';
import css from '../agents/agents.module.css';

const NONE: readonly never[] = [];

export function ConversationPage() {
  const { sessionId = '' } = useParams();
  const query = useQuery(agentSessionQuery(sessionId));
  const { data: me } = useQuery(meQuery);
  return (
    <Loaded query={query}>
      {(session) =>
        me === undefined ? null : (
          <InOrg key={sessionId} value={session.orgId}>
            <Conversation session={session} userId={me.id} />
          </InOrg>
        )
      }
    </Loaded>
  );
}

function Conversation({ session, userId }: { session: api.AgentSession; userId: string }) {
  const { data: sandbox } = useQuery(sandboxQuery(session.sandboxId));
  const { data: members = NONE } = useQuery(membersQuery(session.orgId));
  const phase = phaseOf(sandbox?.status ?? session.sandboxStatus);
  const { transcript, error } = useTranscript(session.id, phase === 'awake');
  const { recentTurns = NONE } = session;
  const turns = useMemo(() => shownTurns(transcript, recentTurns), [transcript, recentTurns]);
  const [region, fresh, toEnd] = useFollowEnd(turns.length + transcript.replies.length);
  const isGone = session.bridgeState === 'gone';
  return (
    <Page
      title={session.agentLabel}
      part={sandbox?.name ?? null}
      crumbs={
        <nav className={sandboxCss.crumbs} aria-label={agentsText.crumbs}>
          <Link to={PATHS.sandboxAgents(session.sandboxId)}>
            <Untrusted text={sandbox?.name ?? session.sandboxId} />
          </Link>
        </nav>
      }
      beside={<Untrusted text={agentsText.status(session.communication.status)} />}
    >
      <div className={css.conversation}>
        <State session={session} status={sandbox?.status ?? session.sandboxStatus} />
        {/* oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex -- scrolls by keys */}
        <section ref={region} className={css.region} aria-label={text.conversation} tabIndex={0}>
          <ol className={css.turns}>
            <li className={css.hint}>
              {turns.length === 0 && session.turnId === null ? text.empty : text.hint}
              {transcript.trimmed ? ` ${text.trimmed}` : ''}
            </li>
            {turns.map((shown) => (
              <Turn key={shown.turnId} shown={shown} agent={session.agentLabel} members={members} />
            ))}
          </ol>
        </section>
        <Alert title={text.notRead} error={error} />
        {isGone || phase === 'asleep' ? (
          <div className={css.notice}>
            <span>{isGone ? text.gone : text.asleep}</span>
            {isGone || sandbox === undefined ? null : (
              <InSandbox sandbox={sandbox}>
                <ActionButton action="wake" />
              </InSandbox>
            )}
          </div>
        ) : null}
        {session.bridgeState === 'stopped' ? (
          <div className={css.notice}>
            <span>{text.stopped(session.bridgeReason === null ? null : text.bridgeReason(session.bridgeReason))}</span>
            <RecoverButton session={session} />
          </div>
        ) : null}
        <Approval session={session} />
        <Composer {...{ session, userId }}>
          {fresh === 0 ? null : <Button onClick={toEnd}>{text.fresh(fresh)}</Button>}
        </Composer>
      </div>
    </Page>
  );
}

function State({ session, status }: { session: api.AgentSession; status: string }) {
  const { bridgeState, turnState, communication } = session;
  const possible = communication.capabilities.map(text.operation).join(', ');
  return (
    <Facts
      className={css.facts}
      label={text.state.label}
      of={{
        [text.state.sandbox]: visibleText(en.status(status)),
        [text.state.session]: visibleText(text.bridge(bridgeState)),
        [text.state.turn]: turnState === null ? agentsText.none : visibleText(agentsText.turnState(turnState)),
        [text.state.possible]: visibleText(possible === '' ? text.nothing : possible),
      }}
    />
  );
}
