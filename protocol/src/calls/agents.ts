// Calls of managed agent sessions. Only `startAgent` has code in the host daemon, which sends the
// bridge program to guests that lack it.
import { z } from 'zod';
import {
  AGENT_ERRORS,
  AGENT_PAGE,
  AGENT_PROMPT,
  AGENT_READY_MS,
  AGENT_SESSIONS,
  AGENT_TEXT_UNITS,
  AGENT_WAIT_MS,
  BRIDGE_PROGRAM_BYTES,
  BRIDGE_SHA256,
  type AgentErrorCode,
} from '../agent-errors.ts';
import {
  agentKind,
  agentRunId,
  agentSessionId,
  agentSurface,
  agentTurnId,
  guestAgentView,
  guestPromptText,
  guestReply,
  guestTurn,
  guestTurnText,
  guestUnixMs,
} from '../agents.ts';
import { defineCall } from './define.ts';
import { variablesId } from './variables.ts';

const codes = Object.keys(AGENT_ERRORS) as [AgentErrorCode, ...AgentErrorCode[]];
/** A text of the limit with every unit escaped. */
const TEXT_BYTES = 6 * AGENT_TEXT_UNITS;
const SMALL_BYTES = 16_384;
const VIEW_BYTES = 16_384;
/** Spaces of a keep-alive response. */
const SPACES = 64;

const sessionParams = z.object({ sessionId: agentSessionId });
const turnParams = sessionParams.extend({ turnId: agentTurnId });
const waitMs = z.coerce.number<string>().int().min(0).max(AGENT_WAIT_MS);
const after = z.coerce.number<string>().int().min(0).max(Number.MAX_SAFE_INTEGER);
const limits = { form: 'json', marginMs: 2_500, errors: codes, since: 4 } as const;
const json = { ...limits, deadlineMs: 10_000, responseBytes: 2 * VIEW_BYTES } as const;
const waiting = { ...limits, deadlineMs: AGENT_WAIT_MS + 5_000 } as const;

const startBody = z.strictObject({
  agent: agentKind,
  /** `create`: a new conversation. `recover`: the saved one; a ready session is left alone. */
  mode: z.enum(['create', 'recover']),
  /** `never`: the agent does not ask for approval. */
  approvals: z.enum(['ask', 'never']),
  /** True: the model gateway of the host adds the key. False: the agent's own sign-in. */
  gateway: z.boolean(),
  /** Id of an earlier `stageVariables`; guests before version 10 have neither. */
  variables: variablesId.optional(),
  /** Default: `managed`; guests before version 12 have no other. */
  surface: agentSurface.optional(),
});
export type AgentStart = z.infer<typeof startBody>;

const guestStartBody = startBody.omit({ gateway: true }).extend({
  /** Address of the model gateway as the guest reaches it; null: the agent's own sign-in. */
  gatewayUrl: z.string().max(200).nullable(),
  bridge: z.string().regex(BRIDGE_SHA256),
  /** Tests only: the scripted agent takes the place of the agent. */
  scripted: z.boolean(),
});
export type GuestAgentStart = z.infer<typeof guestStartBody>;

const started = z.discriminatedUnion('outcome', [
  z.object({ outcome: z.literal('ready'), session: guestAgentView }),
  z.object({
    outcome: z.literal('refused'),
    code: z.enum(codes),
    message: z.string().max(2_000),
    session: guestAgentView.nullable(),
  }),
]);
export type AgentStarted = z.infer<typeof started>;

const start = {
  method: 'POST',
  requestBytes: SMALL_BYTES,
  form: 'keepalive',
  response: started,
  responseBytes: 2 * VIEW_BYTES + SPACES,
  errors: codes,
  since: 4,
} as const;

/** Starts a session's bridge and waits for its agent. Joins a start in progress or done. */
export const guestStartAgent = defineCall({
  ...start,
  name: 'guestStartAgent',
  target: 'guest',
  path: '/agents/{sessionId}/start',
  params: sessionParams,
  body: guestStartBody,
  deadlineMs: AGENT_READY_MS + 5_000,
  marginMs: 5_000,
});

/** {@link guestStartAgent}, after the bridge program was sent to a guest that lacks it. */
export const startAgent = defineCall({
  ...start,
  name: 'startAgent',
  target: 'host',
  path: '/vms/{vmId}/agents/{sessionId}/start',
  fenced: true,
  params: sessionParams,
  body: startBody,
  deadlineMs: AGENT_READY_MS + 15_000,
  marginMs: 5_000,
});

/** Stores a bridge program, named by the SHA-256 of its bytes, which the guest verifies. */
export const putBridge = defineCall({
  name: 'putBridge',
  target: 'guest',
  method: 'PUT',
  path: '/agents/bridges/{sha256}',
  params: z.object({ sha256: z.string().regex(BRIDGE_SHA256) }),
  upload: true,
  requestBytes: BRIDGE_PROGRAM_BYTES,
  form: 'json',
  response: z.object({}),
  responseBytes: SMALL_BYTES,
  deadlineMs: 20_000,
  marginMs: 5_000,
  repeatable: true,
  since: 4,
});

/** Lists all sessions of the sandbox. */
export const listAgents = defineCall({
  ...json,
  name: 'listAgents',
  target: 'pass-through',
  method: 'GET',
  path: '/agents',
  response: z.object({ sessions: z.array(guestAgentView).max(AGENT_SESSIONS.kept) }),
  responseBytes: AGENT_SESSIONS.kept * VIEW_BYTES,
  repeatable: true,
});

/**
 * Returns a session with its last turns and the text of a pending approval. With `revision` of the
 * current run and `waitMs`, holds the response until the view is newer.
 */
export const getAgent = defineCall({
  ...waiting,
  name: 'getAgent',
  target: 'pass-through',
  method: 'GET',
  path: '/agents/{sessionId}',
  params: sessionParams,
  query: z.strictObject({
    revision: after.optional(),
    waitMs: waitMs.optional(),
    /** `full`: the whole detail of the approval. */
    detail: z.enum(['short', 'full']).optional(),
  }),
  response: z.object({
    session: guestAgentView,
    /** Newest first. */
    recentTurns: z.array(guestTurn).max(10),
    prompt: guestPromptText.nullable(),
    /** The guest's clock at the response. Guests without it are older. */
    nowUnixMs: guestUnixMs.optional(),
  }),
  responseBytes: 2 * VIEW_BYTES + 6 * AGENT_PROMPT.fullBytes + 32_768,
  repeatable: true,
});

/** Returns a turn, or null if this guest never took it. */
export const getAgentTurn = defineCall({
  ...json,
  name: 'getAgentTurn',
  target: 'pass-through',
  method: 'GET',
  path: '/agents/{sessionId}/turns/{turnId}',
  params: turnParams,
  response: z.object({ turn: guestTurn.nullable(), session: guestAgentView }),
  repeatable: true,
});

/**
 * Gives a message to the agent, as the turn `turnId`, which runs at most once: a known turn id
 * returns its recorded state with `known`. `keyed` requires a bridge that supports it.
 */
export const sendAgentMessage = defineCall({
  ...json,
  name: 'sendAgentMessage',
  target: 'pass-through',
  method: 'POST',
  path: '/agents/{sessionId}/messages',
  params: sessionParams,
  body: z.strictObject({
    turnId: agentTurnId,
    /** Run for which the message is meant; another one refuses it. */
    runId: agentRunId,
    text: z.string().min(1).max(AGENT_TEXT_UNITS),
    keyed: z.boolean(),
    author: z.string().max(200),
  }),
  requestBytes: TEXT_BYTES + 8_192,
  response: z.object({ turn: guestTurn, known: z.boolean(), session: guestAgentView }),
});

/** Declares a turn undelivered, durably, unless it was taken; returns its state. */
export const voidAgentTurn = defineCall({
  ...json,
  name: 'voidAgentTurn',
  target: 'pass-through',
  method: 'POST',
  path: '/agents/{sessionId}/turns/{turnId}/void',
  params: turnParams,
  response: z.object({ turn: guestTurn, session: guestAgentView }),
  repeatable: true,
});

/** Answers an approval. A repeated answer returns `repeated`. */
export const answerAgent = defineCall({
  ...json,
  name: 'answerAgent',
  target: 'pass-through',
  method: 'POST',
  path: '/agents/{sessionId}/answer',
  params: sessionParams,
  body: z.strictObject({
    /** Compared by type and value. */
    requestId: z.union([z.number(), z.string().max(200)]),
    decision: z.enum(['accept', 'decline', 'cancel']),
  }),
  requestBytes: SMALL_BYTES,
  response: z.object({ repeated: z.boolean(), session: guestAgentView }),
});

/** Requests the end of the active turn and of the commands that it runs. */
export const interruptAgent = defineCall({
  ...json,
  name: 'interruptAgent',
  target: 'pass-through',
  method: 'POST',
  path: '/agents/{sessionId}/interrupt',
  params: sessionParams,
  response: z.object({ session: guestAgentView }),
  repeatable: true,
});

/** The agent of a ready session asks for approval from now on, also in its active turn. */
export const requireAgentApprovals = defineCall({
  ...json,
  name: 'requireAgentApprovals',
  target: 'pass-through',
  method: 'POST',
  path: '/agents/{sessionId}/approvals',
  params: sessionParams,
  response: z.object({ session: guestAgentView }),
  repeatable: true,
  since: 7,
  // A guest of an earlier version has no such path, and without the session a code.
  statuses: { 404: ['agent_unsupported', 'the guest cannot change the approvals of a running session'] },
});

/** Replies after `after`, oldest first; with `waitMs`, held until there is one. */
export const readAgentOutput = defineCall({
  ...waiting,
  name: 'readAgentOutput',
  target: 'pass-through',
  method: 'GET',
  path: '/agents/{sessionId}/output',
  params: sessionParams,
  query: z.strictObject({
    after,
    limit: z.coerce.number<string>().int().min(1).max(AGENT_PAGE.replies),
    waitMs: waitMs.optional(),
  }),
  response: z.object({ replies: z.array(guestReply).max(AGENT_PAGE.replies), hasMore: z.boolean() }),
  responseBytes: TEXT_BYTES + 65_536,
  repeatable: true,
});

/** Turns with a number above `after`, oldest first, with their messages. */
export const readAgentTurns = defineCall({
  ...json,
  name: 'readAgentTurns',
  target: 'pass-through',
  method: 'GET',
  path: '/agents/{sessionId}/turns',
  params: sessionParams,
  query: z.strictObject({ after, limit: z.coerce.number<string>().int().min(1).max(AGENT_PAGE.turns) }),
  response: z.object({ turns: z.array(guestTurnText).max(AGENT_PAGE.turns), hasMore: z.boolean() }),
  responseBytes: TEXT_BYTES + 65_536,
  repeatable: true,
});
