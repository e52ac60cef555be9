// Refusals of agent calls, and their limits on the guest wire. Imports no package: the guest daemon
// and the bridge bundle this file.

/**
 * Refusals with their HTTP status on the internal wires.
 * - `agent_session_missing`: the guest has no files of the session. `agent_bridge_missing`: the
 *   guest does not have that bridge program; the host sends it and repeats the call.
 * - `agent_turn_active`: another turn is active. `agent_turn_void`: the turn was declared
 *   undelivered, and never runs. `agent_turn_not_active`: there is nothing to interrupt.
 * - `agent_run_over`: the message was meant for an earlier run of the guest.
 * - `agent_bridge_stopped`: the operation needs a live bridge. `agent_bridge_too_old`: the live
 *   bridge lacks the feature.
 * - `agent_process_alive`: a recorded process of an earlier bridge is alive.
 * - `agent_conversation_missing`, `agent_not_signed_in`, `agent_not_installed`: reasons why an
 *   agent cannot start.
 * - `agent_session_limit`: limit of sessions or live bridges, or too little free memory.
 * - `agent_prompt_not_pending`: the request id is unknown, stale, of another type, or was answered
 *   otherwise.
 * - `agent_not_ready`: the agent was not ready in time, or exited before.
 * - `agent_unsupported`: this agent or surface does not support the operation.
 * - `agent_models_unavailable`: the host's model gateway does not respond.
 */
export const AGENT_ERRORS = {
  agent_session_missing: 404,
  agent_bridge_missing: 409,
  agent_turn_active: 409,
  agent_turn_void: 409,
  agent_turn_not_active: 409,
  agent_run_over: 409,
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
  agent_models_unavailable: 503,
} as const;
export type AgentErrorCode = keyof typeof AGENT_ERRORS;

/** Version of the bridge program; 4 records process owners, 7 takes a turn id once and voids it. */
export const BRIDGE_VERSION = 7;
export const BRIDGE_FEATURES = { owners: 4, keyedMessages: 7 } as const;

/** Limits of a bridge program pushed to a guest, and of its idle life. */
export const BRIDGE_PROGRAM_BYTES = 4 * 1_024 * 1_024;
export const BRIDGE_IDLE_MS = 30 * 60_000;
/** Time from the call to a ready agent (spec: Limits). */
export const AGENT_READY_MS = 60_000;
/** Time for the end of an interrupted turn, before its agent is ended and resumed. */
export const AGENT_INTERRUPT_MS = 15_000;
/** Longest hold of a bounded wait in the guest. */
export const AGENT_WAIT_MS = 25_000;
/** Sessions kept, and live bridges, of a sandbox. */
export const AGENT_SESSIONS = { kept: 64, live: 8 } as const;
/** UTF-16 units of a message or reply, and of a page of output; replies in a page. */
export const AGENT_TEXT_UNITS = 131_072;
export const AGENT_PAGE = { replies: 100, turns: 100 } as const;
/** UTF-16 units of the title and short detail of an approval, and bytes of its full detail. */
export const AGENT_PROMPT = { title: 200, detail: 4_096, fullBytes: 131_072 } as const;
/** Added to the reply counter after a boot from the disk, which may have lost the last replies. */
export const AGENT_SEQ_GAP = 10_000;

export const AGENT_SESSION_ID = /^ags_[a-z2-7]{20,40}$/;
export const AGENT_TURN_ID = /^trn_[a-z2-7]{20,40}$/;
export const AGENT_KIND = /^[a-z][a-z0-9_]{0,31}$/;
export const BRIDGE_SHA256 = /^[0-9a-f]{64}$/;
