// An expected refusal of an agent call, with its code on the wire.
import { AGENT_ERRORS, type AgentErrorCode } from '@berth/protocol/agent-errors.ts';

export class AgentRefused extends Error {
  override readonly name = 'AgentRefused';
  readonly code: AgentErrorCode;
  readonly status: number;

  constructor(code: AgentErrorCode, message: string) {
    super(message);
    this.code = code;
    this.status = AGENT_ERRORS[code];
  }
}

export function bridgeStopped(): AgentRefused {
  return new AgentRefused('agent_bridge_stopped', 'the bridge has stopped: recover the session');
}
