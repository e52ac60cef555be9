// The terminal of a sandbox's agent: its own program, which everyone shares. Its session exists
// before the terminal does, and nothing in the guest can add one.
import type { TerminalSize } from '@berth/protocol/calls/connections.ts';
import type { Actor } from '../../rules/access/access.ts';
import { CodedError } from '../../rules/coded-error.ts';
import type { AgentSessionRow } from '../../store/agents/sessions.ts';
import { findOrInsertTerminal } from '../../store/agents/terminals.ts';
import type { ConnectionTarget } from '../connections/connections.ts';
import type { ServiceContext } from '../context/context.ts';
import { isAgentRefusal, refusalOf } from './failure.ts';
import { startSession } from './start.ts';

/** A connection to the program; starts it unless it runs. */
export function toAgentTerminal(context: ServiceContext, actor: Actor, size: TerminalSize): ConnectionTarget {
  return {
    name: 'the terminal of the agent',
    details: { terminal: true, agent: true },
    open: async (host, vm, signal, { sandbox }) => {
      const { session, isNew } = await findOrInsertTerminal(context.db, sandbox, actor);
      const open = () => host.openTerminal(vm, { ...size, agent: session.id }, { signal });
      if (session.bridge_state === 'ready') {
        try {
          return await open();
        } catch (error) {
          if (!hasEnded(error)) throw explained(error, session);
        }
      }
      // Another request may be starting it: the guest joins the two.
      const mode = isNew || session.bridge_state === 'starting' ? 'create' : 'reopen';
      await startSession(context, actor, sandbox, session, mode);
      try {
        return await open();
      } catch (error) {
        throw explained(error, session);
      }
    },
  };
}

/** Whether the program has ended since the guest was last asked. */
function hasEnded(error: unknown): boolean {
  return isAgentRefusal(error) && (error.code === 'agent_bridge_stopped' || error.code === 'agent_session_missing');
}

function explained(error: unknown, session: AgentSessionRow): unknown {
  if (hasEnded(error)) {
    const message = "cannot open the terminal: the agent's program exited at its start; open the terminal again";
    return new CodedError('agent_bridge_stopped', message, { cause: error });
  }
  return isAgentRefusal(error) ? refusalOf(error.code, session) : error;
}
