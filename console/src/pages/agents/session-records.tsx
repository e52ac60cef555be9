// Agent sessions as records, as last known.
import type { ReactNode } from 'react';
import { Link } from 'react-router';
import type { api } from '@berth/sdk';
import { knownSandbox } from '../../queries/sandboxes.ts';
import { PATHS } from '../../rules/paths.ts';
import { AGENT_SESSION } from '../../rules/terminal/attachment.ts';
import { agentsText as text } from '../../text/agents.ts';
import { Below, buttonClass, Records, Time, Untrusted, type Column } from '../../ui/kit/index.ts';

type Session = api.AgentSession;

const AGENT: Column<Session> = {
  name: text.columns.agent,
  cell: ({ agentLabel, id, surface }) => (
    <>
      <Untrusted text={agentLabel} />
      {surface === 'terminal' ? ` ${text.terminal}` : ''}
      <Below text={id} />
    </>
  ),
};

const SANDBOX: Column<Session> = {
  name: text.columns.sandbox,
  cell: ({ sandboxId }) => (
    <Link to={PATHS.sandboxAgents(sandboxId)}>
      <Untrusted text={knownSandbox(sandboxId)?.name ?? sandboxId} />
    </Link>
  ),
};

const COLUMNS: readonly Column<Session>[] = [
  { name: text.columns.state, cell: ({ communication }) => <Untrusted text={text.status(communication.status)} /> },
  {
    name: text.columns.turn,
    quiet: true,
    cell: ({ turnState, turnEndedAt, turnStartedAt }) => (
      <>
        <Untrusted text={turnState && text.turnState(turnState)} absent={text.none} />{' '}
        <Time at={turnState && (turnEndedAt ?? turnStartedAt)} />
      </>
    ),
  },
  { name: text.columns.created, quiet: true, cell: ({ createdAt }) => <Time at={createdAt} /> },
];

/** A conversation, or the terminal in which it takes place. */
function placeOf({ id, sandboxId, surface }: Session): string {
  return surface === 'terminal' ? PATHS.sandboxTerminal(sandboxId, AGENT_SESSION) : PATHS.agentSession(id);
}

interface SessionRecordsProps {
  sessions: readonly Session[];
  /** The page is about the sandbox. */
  inSandbox?: boolean;
  renderAction?: (session: Session) => ReactNode;
}

export function SessionRecords({ sessions, inSandbox = false, renderAction }: SessionRecordsProps) {
  return (
    <Records
      label={text.title}
      records={sessions}
      keyOf={({ id }) => id}
      columns={inSandbox ? [AGENT, ...COLUMNS] : [AGENT, SANDBOX, ...COLUMNS]}
      renderActions={(session) => (
        <>
          {renderAction?.(session)}
          <Link className={buttonClass()} to={placeOf(session)} aria-label={text.of(text.open, session)}>
            {text.open}
          </Link>
        </>
      )}
    />
  );
}
