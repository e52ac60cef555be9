// Tab of a sandbox: sessions of its agent.
import { useInfiniteQuery } from '@tanstack/react-query';
import { Link } from 'react-router';
import { agentSessionsQuery } from '../../queries/agent-sessions.ts';
import { PATHS } from '../../rules/paths.ts';
import { AGENT_SESSION, phaseOf } from '../../rules/terminal/attachment.ts';
import { agentsText as text } from '../../text/agents.ts';
import { buttonClass, Notice } from '../../ui/kit/index.ts';
import { Loaded } from '../frame/content.tsx';
import { ActionButton } from '../sandboxes/action-button.tsx';
import { useSandboxInView } from '../sandboxes/in-view.tsx';
import { SessionRecords } from './session-records.tsx';
import { StartButton } from './start-button.tsx';
import css from './agents.module.css';

const EMPTY = (
  <Notice title={text.empty}>
    <code>{text.command}</code>
  </Notice>
);

export function SandboxAgentsPage() {
  const { sandbox, whyNot } = useSandboxInView();
  const asleep = phaseOf(sandbox.status) === 'asleep';
  return (
    <>
      <div className={css.head}>
        <p>{asleep ? text.asleep : text.sandboxHint}</p>
        {asleep ? <ActionButton action="wake" /> : null}
        <Link className={buttonClass()} to={PATHS.sandboxTerminal(sandbox.id, AGENT_SESSION)}>
          {text.openTerminal}
        </Link>
        <StartButton sandboxId={sandbox.id} reason={whyNot('agent_session')} />
      </div>
      <Loaded query={useInfiniteQuery(agentSessionsQuery({ sandboxId: sandbox.id }))} rows={3} empty={EMPTY}>
        {(sessions) => <SessionRecords sessions={sessions} inSandbox />}
      </Loaded>
    </>
  );
}
