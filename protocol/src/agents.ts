// A guest's view of an agent session: states of its bridge and turns, without the text of messages,
// replies and approvals. The guest is hostile: every field is bounded.
import { z } from 'zod';
import { AGENT_KIND, AGENT_PROMPT, AGENT_SESSION_ID, AGENT_TEXT_UNITS, AGENT_TURN_ID } from './agent-errors.ts';

export const agentSessionId = z.string().regex(AGENT_SESSION_ID);
export const agentTurnId = z.string().regex(AGENT_TURN_ID);
/** Random id of a run of a guest. */
export const agentRunId = z.string().regex(/^[0-9a-f]{32}$/);
export const agentSurface = z.enum(['managed', 'terminal']);
export const agentKind = z.string().regex(AGENT_KIND);

/** Grows without a gap in one session; larger after a boot from the disk. */
const counter = z.int().min(0).max(Number.MAX_SAFE_INTEGER);
/** The guest's clock, in milliseconds since 1970: shown, and used for nothing else. */
export const guestUnixMs = z.int().min(0).max(8.64e15);

/**
 * State of a turn in the guest.
 *
 * ```
 * running <-> waiting --> completed | failed | canceled        (none) --void--> void
 *    └─────────┴──> interrupting --> canceled (or the end that came first)
 * ```
 *
 * `waiting`: for an answer to an approval. `void`: declared undelivered before it arrived.
 */
const guestTurnState = z.enum(['running', 'waiting', 'interrupting', 'completed', 'failed', 'canceled', 'void']);

/**
 * Why a turn failed. `agent_error`: the agent reported an error. `agent_ended`, `bridge_ended`: the
 * process exited; `machine_lost`: the VM booted its disk. In these cases the outcome is unknown.
 */
const guestTurnReason = z.enum(['agent_error', 'agent_ended', 'bridge_ended', 'machine_lost']);

export const guestTurn = z.object({
  turnId: agentTurnId,
  state: guestTurnState,
  reason: guestTurnReason.nullable(),
  startedUnixMs: guestUnixMs,
  endedUnixMs: guestUnixMs.nullable(),
  /** A person began it in the agent's terminal. */
  isPersons: z.literal(true).optional(),
});
export type GuestTurn = z.infer<typeof guestTurn>;

/** State of a bridge; `stopped` keeps its conversation and replies. */
const guestBridgeState = z.enum(['starting', 'ready', 'stopped']);
const guestBridgeReason = z.enum([
  'not_ready',
  'agent_ended',
  'bridge_ended',
  'idle',
  'memory',
  'machine_lost',
  'not_signed_in',
  'conversation_missing',
]);

/** Kind of an approval. */
const guestPromptKind = z.enum(['command', 'file_change', 'permissions', 'tool']);

const guestPrompt = z.object({
  /** Never reused within a session. */
  requestId: counter,
  turnId: agentTurnId,
  kind: guestPromptKind,
  askedUnixMs: guestUnixMs,
});

export const guestAgentView = z.object({
  sessionId: agentSessionId,
  agent: agentKind,
  surface: agentSurface,
  bridge: guestBridgeState,
  bridgeVersion: z.int().min(1).max(1_000).nullable(),
  bridgeReason: guestBridgeReason.nullable(),
  /** Random id of the guest's current run: kept over sleep and wake, lost by a boot of the disk. */
  runId: agentRunId,
  /** Grows with each change of this view; comparable within a run. */
  revision: counter,
  /** Active turn, or the last one. */
  turn: guestTurn.nullable(),
  prompt: guestPrompt.nullable(),
  /** `seq` of the last completed reply; 0 before the first. */
  lastSeq: counter,
  /** Counts signs of life of the agent: events of its turn. */
  signs: counter,
  /**
   * Part of the bridge in the conversation of a terminal's program: `pending` until the program
   * shows one. Absent if it takes none, and from managed sessions.
   */
  conversation: z.enum(['pending', 'open']).optional(),
});
export type GuestAgentView = z.infer<typeof guestAgentView>;

/** Approval as plain text; `truncated` if the detail was longer. */
export const guestPromptText = guestPrompt.extend({
  title: z.string().max(AGENT_PROMPT.title),
  detail: z.string().max(AGENT_PROMPT.fullBytes),
  truncated: z.boolean(),
  workingDirectory: z.string().max(4_096).nullable(),
});
export type GuestPromptText = z.infer<typeof guestPromptText>;

export const guestReply = z.object({
  seq: counter,
  turnId: agentTurnId,
  atUnixMs: guestUnixMs,
  text: z.string().max(AGENT_TEXT_UNITS),
  truncated: z.boolean(),
});
export type GuestReply = z.infer<typeof guestReply>;

/** A turn with its prompt, for a view of the conversation. */
export const guestTurnText = guestTurn.extend({
  number: counter,
  text: z.string().max(AGENT_TEXT_UNITS),
  /** Given by the control plane with the message. */
  author: z.string().max(200),
});
export type GuestTurnText = z.infer<typeof guestTurnText>;
