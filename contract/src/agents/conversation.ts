// Messages, replies, approvals and interrupts of an agent session (spec: Agent sessions).
import { z } from 'zod';
import { HELD } from '../route/held.ts';
import { AGENT_OUTPUT_PAGE, AGENT_TEXT_CHARACTERS, REQUEST_KEY_CHARACTERS } from '../route/limits.ts';
import { numberInQuery } from '../route/number-in-query.ts';
import { pageQuery } from '../route/page.ts';
import { defineRoute } from '../route/route.ts';
import { idText, text, timestamp } from '../route/text.ts';
import {
  AGENT_CALL_ERRORS,
  agentDecision,
  agentRequestId,
  agentSessionParams,
  agentTurn,
  SEND_ERRORS,
} from './sessions.ts';
import { turnState } from './state.ts';

const { min, max } = REQUEST_KEY_CHARACTERS;

const sendBody = z.strictObject({
  text: text(1, AGENT_TEXT_CHARACTERS).describe('Message to the agent.'),
  requestKey: z
    .string()
    .regex(
      new RegExp(`^[A-Za-z0-9._:-]{${min},${max}}$`),
      `must be ${min} to ${max} letters, digits, dots, underscores, colons or hyphens`,
    )
    .optional()
    .describe('Makes a resend of the same text with the same credential return the same turn.'),
});

const sentTurn = z.strictObject({
  turnId: idText,
  state: turnState,
  replayed: z.literal(true).optional().describe('Present if the turn belongs to an earlier message with this key.'),
});
export type SentTurn = z.infer<typeof sentTurn>;

export const sendAgentMessage = defineRoute({
  name: 'sendAgentMessage',
  summary:
    'Gives a message to the agent and starts a turn; poll for its end. Wakes a stopped sandbox if its project has ' +
    'wakeOnUse',
  method: 'POST',
  path: '/v1/agent-sessions/{sessionId}/messages',
  auth: ['session', 'api_key', 'agent_token'],
  permission: 'agent_session.send',
  request: { params: agentSessionParams, body: sendBody },
  bodyBytes: 1_048_576,
  longField: { name: 'text', maxBytes: 3 * AGENT_TEXT_CHARACTERS, tooLong: 'invalid_request' },
  response: { status: 202, body: sentTurn },
  errors: [
    ...SEND_ERRORS,
    'agent_turn_active',
    'agent_bridge_stopped',
    'agent_bridge_not_ready',
    'request_key_conflict',
    'session_retry_upgrade_required',
    'message_delivery_uncertain',
  ],
  activity: 'agent_message_sent',
  published: true,
});

const outputMessage = z
  .strictObject({
    seq: z.int().min(1).describe('Grows within the session, with gaps.'),
    turnId: idText,
    at: timestamp.describe("By the sandbox's clock."),
    text: z.string(),
    truncated: z.boolean().describe(`Whether the reply was longer than ${AGENT_TEXT_CHARACTERS} UTF-16 code units.`),
  })
  .meta({ id: 'AgentOutputMessage', description: 'A completed reply of the agent.' });

export const getAgentOutput = defineRoute({
  name: 'getAgentOutput',
  summary: `Returns completed replies after the caller's cursor, oldest first. Held ${HELD} until there is one`,
  method: 'GET',
  path: '/v1/agent-sessions/{sessionId}/output',
  auth: ['session', 'api_key', 'agent_token'],
  permission: 'agent_session.read',
  request: {
    params: agentSessionParams,
    query: z.strictObject({
      after: pageQuery.shape.after.describe('The `nextCursor` of the previous page; without it, the first reply.'),
      limit: numberInQuery({
        min: 1,
        max: AGENT_OUTPUT_PAGE.max,
        description: `Maximum number of replies; default ${AGENT_OUTPUT_PAGE.default}.`,
      }).optional(),
    }),
  },
  holds: true,
  response: {
    status: 200,
    body: z.strictObject({
      messages: z.array(outputMessage),
      nextCursor: z.string().describe('Value of `after` for the next call, also if there are no replies yet.'),
      hasMore: z.boolean(),
    }),
  },
  errors: AGENT_CALL_ERRORS,
  activity: null,
  published: true,
});

const turnWithMessage = agentTurn
  .extend({
    number: z.int().describe('Position in the session.'),
    text: z.string().describe('Message that started the turn.'),
    author: z
      .strictObject({ kind: z.string(), userId: z.string() })
      .nullable()
      .describe("Caller who sent the message, as the sandbox reports it; null: a person at the agent's terminal."),
  })
  .meta({ id: 'AgentTurnWithMessage', description: 'A turn with the message that started it.' });
export type AgentTurnWithMessage = z.infer<typeof turnWithMessage>;

export const listAgentTurns = defineRoute({
  name: 'listAgentTurns',
  summary: 'Lists the turns of a session with their messages, oldest first; the sandbox must be awake',
  method: 'GET',
  path: '/v1/agent-sessions/{sessionId}/turns',
  auth: ['session', 'api_key', 'agent_token'],
  permission: 'agent_session.read',
  request: {
    params: agentSessionParams,
    query: z.strictObject({
      after: pageQuery.shape.after,
      limit: numberInQuery({
        min: 1,
        max: AGENT_OUTPUT_PAGE.max,
        description: `Maximum number of turns; default ${AGENT_OUTPUT_PAGE.default}.`,
      }).optional(),
    }),
  },
  response: {
    status: 200,
    body: z.strictObject({ turns: z.array(turnWithMessage), nextCursor: z.string(), hasMore: z.boolean() }),
  },
  errors: AGENT_CALL_ERRORS,
  activity: null,
  published: true,
});

export const answerAgentPrompt = defineRoute({
  name: 'answerAgentPrompt',
  summary:
    'Answers the pending approval of a session; accepting may carry out its action. Repeating an answer succeeds',
  method: 'POST',
  path: '/v1/agent-sessions/{sessionId}/answer',
  auth: ['session', 'api_key', 'agent_token'],
  permission: 'agent_session.approve',
  request: {
    params: agentSessionParams,
    body: z.strictObject({ requestId: agentRequestId, decision: agentDecision }),
  },
  response: {
    status: 200,
    body: z.strictObject({
      requestId: agentRequestId,
      decision: agentDecision,
      repeated: z.boolean().describe('Whether the same answer was given before.'),
      turnId: idText.nullable(),
      turnState: turnState.nullable(),
    }),
  },
  errors: [...AGENT_CALL_ERRORS, 'agent_bridge_stopped', 'agent_prompt_not_pending'],
  activity: 'agent_prompt_answered',
  published: true,
});

export const interruptAgentTurn = defineRoute({
  name: 'interruptAgentTurn',
  summary: 'Requests the end of the active turn and of the commands it runs; poll until the turn has ended',
  method: 'POST',
  path: '/v1/agent-sessions/{sessionId}/interrupt',
  auth: ['session', 'api_key', 'agent_token'],
  permission: 'agent_session.send',
  request: { params: agentSessionParams },
  response: { status: 200, body: z.strictObject({ turnId: idText, state: turnState }) },
  errors: [...AGENT_CALL_ERRORS, 'agent_bridge_stopped', 'agent_turn_not_active'],
  activity: 'agent_turn_interrupted',
  published: true,
});
