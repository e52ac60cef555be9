// Operations that a session's surface has in no state.
import {
  hasOperation,
  type AgentConversation,
  type AgentOperation,
  type AgentSurface,
} from '@berth/contract/agents/state.ts';
import { CodedError } from '../coded-error.ts';

interface Session {
  surface: AgentSurface;
  conversation: AgentConversation;
  sandbox_id: string;
}

/** Throws `agent_operation_unsupported`. @param doing words to follow *cannot* */
export function requireOperation(
  { surface, conversation, sandbox_id: sandboxId }: Session,
  operation: AgentOperation,
  doing: string,
): void {
  if (hasOperation({ surface, conversation }, operation)) return;
  throw new CodedError(
    'agent_operation_unsupported',
    `cannot ${doing}: the session is the terminal of the agent, without ${operation}. Open it with ` +
      `berth agent open ${sandboxId}, or create a managed session`,
  );
}
