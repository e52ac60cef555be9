import { Plus } from 'lucide-react';
import { useNavigate } from 'react-router';
import { startSession } from '../../queries/agent-sessions.ts';
import { PATHS } from '../../rules/paths.ts';
import { agentsText as text } from '../../text/agents.ts';
import { CallButton } from '../../ui/forms/index.ts';

/** Starts a session of the sandbox's agent, and opens it. @param reason why not; null: it can */
export function StartButton({ sandboxId, reason }: { sandboxId: string; reason: string | null }) {
  const navigate = useNavigate();
  return (
    <CallButton
      kind={reason === null ? 'primary' : 'plain'}
      icon={Plus}
      reason={reason}
      failed={text.startFailed}
      run={() => startSession(sandboxId)}
      onDone={(id) => void navigate(PATHS.agentSession(id))}
      pending={text.starting}
    >
      {text.start}
    </CallButton>
  );
}
