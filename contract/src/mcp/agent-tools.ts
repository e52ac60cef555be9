// Tools of agent sessions, which the MCP endpoint offers whatever the query.
import { answerAgentPrompt, getAgentOutput, interruptAgentTurn, sendAgentMessage } from '../agents/conversation.ts';
import { createAgentSession, getAgentSession, listAgentSessions, recoverAgentSession } from '../agents/sessions.ts';
import type { McpTool } from './tool.ts';

export const AGENT_TOOLS: readonly McpTool[] = [
  {
    name: 'create_agent_session',
    title: 'Start agent session',
    description:
      'Starts a new conversation with the coding agent of a sandbox. Waits up to 60 s until the agent is ready; then ' +
      'call send_agent_message. If the call itself times out, find the session with list_agent_sessions before ' +
      'creating another. A session keeps its conversation: reuse it for further messages.',
    toolset: 'agent_sessions',
    route: createAgentSession,
    hints: {},
  },
  {
    name: 'list_agent_sessions',
    title: 'List agent sessions',
    description:
      'Lists agent sessions of all orgs that the credential may read, newest first, in their last known state. Wakes ' +
      'no sandbox. needs_you "true" lists the sessions that wait for an approval. Pass nextCursor as after for the ' +
      'next page.',
    toolset: 'agent_sessions',
    route: listAgentSessions,
    hints: { readOnly: true, idempotent: true },
  },
  {
    name: 'get_agent_session',
    title: 'Get agent session',
    description:
      'Returns an agent session. Poll it after a message until turnState is completed, failed or canceled; then call ' +
      'get_agent_output. To wait instead of polling, set wait_seconds: the call returns at the next change, or at ' +
      'once if no turn is active or needsYou is true; with a revision, when the session differs from it. If ' +
      'needsYou is true, the turn waits for an approval: show pendingInput to the user and call ' +
      'answer_agent_prompt. A turn that ' +
      'failed with the turnReason not_delivered had no effect; any other reason may have had effects. Call only ' +
      'tools that communication.capabilities allows: messages, output, approvals, interruption, recovery.',
    toolset: 'agent_sessions',
    route: getAgentSession,
    hints: { readOnly: true, idempotent: true },
  },
  {
    name: 'get_agent_output',
    title: 'Read agent replies',
    description:
      'Returns the completed replies of the agent after a cursor, oldest first. Pass nextCursor as after in the next ' +
      'call, also if there were no replies. Reading consumes nothing. Replies may be long: a small limit reads a few ' +
      'at a time. wait_seconds waits for the next reply. The sandbox must be awake.',
    toolset: 'agent_sessions',
    route: getAgentOutput,
    hints: { readOnly: true, idempotent: true },
  },
  {
    name: 'send_agent_message',
    title: 'Send message',
    description:
      'Sends a message to the agent, which starts a turn, and returns its turnId at once. Poll get_agent_session for ' +
      'its end. A session has one active turn: agent_turn_active means that this message was not sent. Set ' +
      'request_key to a new unique value for each message. After message_delivery_uncertain or a timeout, send the ' +
      'same text with the same request_key: it never runs twice. Without request_key do not resend; look at the ' +
      'turnId of the error with get_agent_session first. request_key_conflict: the key belongs to another text.',
    toolset: 'agent_sessions',
    route: sendAgentMessage,
    hints: { destructive: true, openWorld: true },
  },
  {
    name: 'answer_agent_prompt',
    title: 'Answer approval',
    description:
      'Answers the approval that a session waits for. Decide as the user wants: accept lets the agent carry out the ' +
      'action, decline refuses it and the turn goes on, cancel refuses it and ends the turn. request_id is ' +
      'pendingInput.requestId of get_agent_session, with the same type: a number stays a number. ' +
      'agent_prompt_not_pending means that it was answered otherwise or is over; read the session again.',
    toolset: 'agent_sessions',
    route: answerAgentPrompt,
    hints: { destructive: true, openWorld: true },
  },
  {
    name: 'interrupt_agent_turn',
    title: 'Interrupt turn',
    description:
      'Requests the end of the active turn and of the commands it runs. Poll get_agent_session until the turn has ' +
      'ended, within 20 s; then the next message continues the conversation.',
    toolset: 'agent_sessions',
    route: interruptAgentTurn,
    hints: { destructive: true },
  },
  {
    name: 'recover_agent_session',
    title: 'Recover agent session',
    description:
      'Restarts the agent of a session whose bridgeState is stopped, with its conversation. Waits up to 60 s. The ' +
      'sandbox must be awake. A ready session is left alone. Failed turns are not repeated: read the last replies, ' +
      'then decide whether to send the message again with a new request_key.',
    toolset: 'agent_sessions',
    route: recoverAgentSession,
    hints: { idempotent: true },
  },
];
