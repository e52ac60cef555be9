// Agent sessions: managed conversations with the coding agent of a sandbox (spec: Agent sessions).
import { z } from 'zod';
import { HELD } from '../route/held.ts';
import { AGENT_PROMPT_CHARACTERS, AGENT_SESSIONS_PAGE } from '../route/limits.ts';
import { numberInQuery } from '../route/number-in-query.ts';
import { pageQuery } from '../route/page.ts';
import { defineRoute } from '../route/route.ts';
import { idText, timestamp } from '../route/text.ts';
import { agent } from '../sandboxes/fields.ts';
import { sandboxParams } from '../sandboxes/sandboxes.ts';
import { sandboxStatus } from '../sandboxes/state.ts';
import { USE_ERRORS, WAKE_ERRORS } from '../sandboxes/use.ts';
import {
  agentOperation,
  agentSurface,
  bridgeReason,
  bridgeState,
  communicationStatus,
  turnReason,
  turnState,
} from './state.ts';

/** Names of the agents for people. */
export const AGENT_LABELS = { agent_one: 'Codex', agent_two: 'Claude Code' } as const;

export const agentDecision = z.enum(['accept', 'decline', 'cancel']).meta({
  id: 'AgentDecision',
  description:
    '`accept`: the agent carries out the action. `decline`: it does not, and goes on. `cancel`: it does not, and the ' +
    'turn ends as `canceled`.',
});
export type AgentDecision = z.infer<typeof agentDecision>;

export const agentRequestId = z
  .union([z.number(), z.string().max(200)])
  .describe('Id of the pending approval, of the same type and value.');

const pendingInput = z
  .strictObject({
    requestId: agentRequestId,
    turnId: idText,
    kind: z
      .string()
      .describe('`command`, `file_change`, `permissions` or `tool`. More may be added; clients must accept others.'),
    askedAt: timestamp.describe("By the sandbox's clock."),
    decisions: z.array(agentDecision),
    title: z.string().nullable().describe('Plain text; null unless read from an awake sandbox for this response.'),
    detail: z
      .string()
      .nullable()
      .describe(
        `At most ${AGENT_PROMPT_CHARACTERS.short} characters, or ${AGENT_PROMPT_CHARACTERS.full} with ` +
          '`detail=full`; null as for `title`.',
      ),
    truncated: z.boolean().describe('Whether `detail` was longer.'),
    workingDirectory: z.string().nullable().describe('Only with `detail=full`.'),
  })
  .meta({ id: 'AgentPendingInput', description: 'Approval that the agent waits for.' });

export const agentTurn = z
  .strictObject({
    turnId: idText,
    state: turnState,
    reason: turnReason.nullable(),
    startedAt: timestamp,
    endedAt: timestamp.nullable(),
  })
  .meta({ id: 'AgentTurn', description: 'A turn of an agent session: a message and the work on it.' });
export type AgentTurn = z.infer<typeof agentTurn>;

const agentSession = z
  .strictObject({
    id: idText,
    orgId: idText,
    projectId: idText,
    sandboxId: idText,
    endUserId: z.string().nullable(),
    agent,
    agentLabel: z.string(),
    surface: agentSurface,
    sandboxStatus,
    bridgeState,
    bridgeVersion: z.int().nullable(),
    bridgeReason: bridgeReason.nullable(),
    turnId: idText.nullable().describe('The active turn, or the last one.'),
    turnState: turnState.nullable(),
    turnReason: turnReason.nullable(),
    turnStartedAt: timestamp.nullable(),
    turnEndedAt: timestamp.nullable(),
    needsYou: z.boolean().describe('Whether the agent waits for a person; see `pendingInput`.'),
    waitingOn: z.string().nullable().describe('`approval`, or null unless `needsYou`. More may be added.'),
    pendingInput: pendingInput.nullable(),
    communication: z.strictObject({
      status: communicationStatus,
      capabilities: z.array(agentOperation).describe('Operations available now.'),
    }),
    revision: z.string().describe('Changes with the session; see `revision` of the query.'),
    stateAt: timestamp.describe('Time at which the state was last learnt from the sandbox.'),
    createdAt: timestamp,
    updatedAt: timestamp,
    recentTurns: z
      .array(agentTurn)
      .optional()
      .describe('The last turns, newest first. Only in responses about one session.'),
  })
  .meta({ id: 'AgentSession', description: 'A managed conversation with the coding agent of a sandbox.' });
export type AgentSession = z.infer<typeof agentSession>;

export const agentSessionParams = z.object({ sessionId: idText });

/** Errors of every call to the guest about a session. */
export const AGENT_CALL_ERRORS = [
  'sandbox_state_conflict',
  'sandbox_unreachable',
  'host_unavailable',
  'sandbox_busy',
  'agent_operation_unsupported',
  'agent_not_supported',
  'agent_conversation_missing',
] as const;

const START_ERRORS = [
  'agent_not_supported',
  'agent_not_installed',
  'agent_not_signed_in',
  'agent_session_limit',
  'agent_process_alive',
  'agent_conversation_missing',
  'agent_bridge_not_ready',
  'variables_unsupported',
  'sandbox_busy',
] as const;

export const createAgentSession = defineRoute({
  name: 'createAgentSession',
  summary:
    "Starts a conversation with the sandbox's agent; waits at most 60 s until it is ready. Wakes a stopped sandbox " +
    'if its project has wakeOnUse',
  method: 'POST',
  path: '/v1/sandboxes/{sandboxId}/agent-sessions',
  auth: ['session', 'api_key', 'agent_token'],
  permission: 'agent_session.send',
  request: { params: sandboxParams },
  response: { status: 201, body: agentSession },
  errors: [...USE_ERRORS, ...START_ERRORS],
  activity: 'agent_session_created',
  published: true,
});

export const listAgentSessions = defineRoute({
  name: 'listAgentSessions',
  summary: 'Lists agent sessions in all orgs that the credential may read, newest first, as last known; wakes nothing',
  method: 'GET',
  path: '/v1/agent-sessions',
  auth: ['session', 'api_key', 'agent_token'],
  permission: 'agent_session.read',
  request: {
    query: z.strictObject({
      orgId: idText.optional(),
      projectId: idText.optional(),
      sandboxId: idText.optional(),
      needsYou: z.enum(['true', 'false']).optional().describe('Only sessions that wait for a person, or do not.'),
      after: pageQuery.shape.after,
      limit: numberInQuery({
        min: 1,
        max: AGENT_SESSIONS_PAGE.max,
        description: `Maximum number of sessions; default ${AGENT_SESSIONS_PAGE.default}.`,
      }).optional(),
    }),
  },
  response: {
    status: 200,
    body: z.strictObject({
      sessions: z.array(agentSession),
      nextCursor: z.string().nullable(),
      hasMore: z.boolean(),
    }),
  },
  errors: [
    'permission_denied',
    'org_not_found',
    'project_not_found',
    'sandbox_not_found',
    'org_access_denied',
    'sso_required',
  ],
  activity: null,
  published: true,
});

export const getAgentSession = defineRoute({
  name: 'getAgentSession',
  summary:
    `Returns an agent session; refreshes its state if its sandbox is awake. Held ${HELD} until it changes; without ` +
    '`revision`, only while a turn is active and needs no person',
  method: 'GET',
  path: '/v1/agent-sessions/{sessionId}',
  auth: ['session', 'api_key', 'agent_token'],
  permission: 'agent_session.read',
  request: {
    params: agentSessionParams,
    query: z.strictObject({
      revision: z
        .string()
        .max(200)
        .optional()
        .describe('`revision` of an earlier response: a held response returns at once if the session differs.'),
      detail: z.enum(['short', 'full']).default('short').describe('Detail of the pending approval.'),
    }),
  },
  holds: true,
  response: { status: 200, body: agentSession },
  errors: [],
  activity: null,
  published: true,
});

export const recoverAgentSession = defineRoute({
  name: 'recoverAgentSession',
  summary:
    'Restarts the stopped bridge of a session with its conversation; waits at most 60 s until it is ready. Leaves a ' +
    'ready session alone. Replays nothing',
  method: 'POST',
  path: '/v1/agent-sessions/{sessionId}/recover',
  auth: ['session', 'api_key', 'agent_token'],
  permission: 'agent_session.send',
  request: { params: agentSessionParams },
  response: { status: 200, body: agentSession },
  errors: [
    'sandbox_state_conflict',
    'sandbox_unreachable',
    'host_unavailable',
    'agent_operation_unsupported',
    ...START_ERRORS,
  ],
  activity: 'agent_session_recovered',
  published: true,
});

/** Errors of a message, which may wake the sandbox. */
export const SEND_ERRORS = [...AGENT_CALL_ERRORS, ...WAKE_ERRORS] as const;
