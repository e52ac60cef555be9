// The session of a command, and whether it supports an operation now.
import type { AgentSession, AgentSessionData, Berth, RefreshOptions } from '@berth/sdk';
import type { CliContext } from '../program/context.ts';
import { CliFailure } from '../output/failure.ts';
import { plainText } from '../output/plain-text.ts';
import { agentSessionId } from '../service/resource-id.ts';

/** The current record. */
export async function openSession(
  { connect, signal }: Pick<CliContext, 'connect' | 'signal'>,
  typed: string | undefined,
  { detail }: Pick<RefreshOptions, 'detail'> = {},
): Promise<{ berth: Berth; session: AgentSession }> {
  const id = agentSessionId(typed);
  const { berth } = await connect();
  const session = await berth.agents.get(id, { signal });
  if (detail !== undefined && session.data.pendingInput !== null) await session.refresh({ detail, signal });
  return { berth, session };
}

interface Wish {
  /** An operation of `communication.capabilities`. */
  operation: string;
  /** `send a message` */
  doing: string;
}

/** Throws a CliFailure with the remedy if the session does not support the operation now. */
export function requireOperation(session: AgentSession, { operation, doing }: Wish): void {
  if (session.can(operation)) return;
  const { reason, remedy } = unavailable(session.data);
  throw new CliFailure(`cannot ${doing}: ${reason}`, { remedy });
}

/** Why operations are missing, and what helps. */
export function unavailable(data: AgentSessionData): { reason: string; remedy: string } {
  const { id, sandboxId, sandboxStatus, communication, bridgeReason } = data;
  switch (communication.status) {
    case 'asleep':
      return {
        reason: `the sandbox ${sandboxId} is not awake (${plainText(sandboxStatus)})`,
        remedy: `wake it with berth sandbox wake ${sandboxId}`,
      };
    case 'stopped':
      return {
        reason: `the agent has stopped${bridgeReason === null ? '' : ` (${plainText(bridgeReason)})`}`,
        remedy: `recover the session with berth agent recover ${id}`,
      };
    case 'starting':
      return { reason: 'the agent is starting', remedy: 'retry in a few seconds' };
    case 'unsupported':
      return {
        reason: 'the session is the terminal of the agent',
        remedy: `open it with berth agent open ${sandboxId}, or start a session with berth agent start ${sandboxId}`,
      };
    case 'gone':
      return {
        reason: `its sandbox ${sandboxId} was destroyed`,
        remedy: 'start a session in another sandbox with berth agent start SANDBOX',
      };
    default:
      return {
        reason: `the session does not support this now (${plainText(communication.status)})`,
        remedy: `berth agent get ${id} shows its state`,
      };
  }
}
