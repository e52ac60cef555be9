// Refusals of agent calls. Imports no package: the bridge bundles this file.

/**
 * Refusals with their HTTP status on the internal wires.
 * - `agent_session_missing`: the guest has no files of the session. `agent_bridge_missing`: the
 *   guest does not have that bridge program; the host sends it and repeats the call.
 * - `agent_turn_active`: another turn is active. `agent_turn_void`: the turn was declared
 *   undelivered, and never runs. `agent_turn_not_active`: there is nothing to interrupt.
 * - `agent_bridge_stopped`: the operation needs a live bridge. `agent_bridge_too_old`: the live
 *   bridge lacks the feature.
 * - `agent_process_alive`: a recorded process of an earlier bridge is alive.
 * - `agent_conversation_missing`, `agent_not_signed_in`, `agent_not_installed`: an agent cannot
 *   start.
 * - `agent_session_limit`: limit of sessions or live bridges, or too little free memory.
 * - `agent_prompt_not_pending`: the request id is unknown, stale, of another type, or was answered
 *   otherwise.
 * - `agent_not_ready`: the agent was not ready in time, or exited before.
 * - `agent_unsupported`: this agent or surface does not support the operation.
 */
const AGENT_ERRORS = {
  agent_session_missing: 404,
  agent_bridge_missing: 409,
  agent_turn_active: 409,
  agent_turn_void: 409,
  agent_turn_not_active: 409,
  agent_bridge_stopped: 409,
  agent_bridge_too_old: 409,
  agent_process_alive: 409,
  agent_conversation_missing: 409,
  agent_not_signed_in: 409,
  agent_not_installed: 409,
  agent_session_limit: 409,
  agent_prompt_not_pending: 409,
  agent_unsupported: 409,
  agent_not_ready: 503,
} as const;
export type AgentErrorCode = keyof typeof AGENT_ERRORS;
