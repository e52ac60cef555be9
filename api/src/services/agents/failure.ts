// Maps failures of agent calls to API errors.
import { AGENT_LABELS } from '@berth/contract/agents/sessions.ts';
import type { ErrorCode } from '@berth/contract/route/errors.ts';
import { AGENT_ERRORS, AGENT_SESSIONS, type AgentErrorCode } from '@berth/protocol/agent-errors.ts';
import { HostError } from '../../hosts/error.ts';
import { CodedError } from '../../rules/coded-error.ts';
import type { AgentSessionRow } from '../../store/agents/sessions.ts';
import type { ServiceContext } from '../context/context.ts';
import { explainHostFailure } from '../hosts/failure.ts';

const RETRY_AFTER_SECONDS = 5;

const CODES: { readonly [code in AgentErrorCode]: ErrorCode } = {
  agent_session_missing: 'agent_conversation_missing',
  agent_bridge_missing: 'agent_bridge_not_ready',
  agent_turn_active: 'agent_turn_active',
  agent_turn_void: 'agent_turn_not_active',
  agent_turn_not_active: 'agent_turn_not_active',
  agent_run_over: 'agent_bridge_stopped',
  agent_bridge_stopped: 'agent_bridge_stopped',
  agent_bridge_too_old: 'session_retry_upgrade_required',
  agent_process_alive: 'agent_process_alive',
  agent_conversation_missing: 'agent_conversation_missing',
  agent_not_signed_in: 'agent_not_signed_in',
  agent_not_installed: 'agent_not_installed',
  agent_session_limit: 'agent_session_limit',
  agent_prompt_not_pending: 'agent_prompt_not_pending',
  agent_unsupported: 'agent_not_supported',
  agent_not_ready: 'agent_bridge_not_ready',
  agent_models_unavailable: 'host_unavailable',
};

type Named = Pick<AgentSessionRow, 'id' | 'sandbox_id' | 'org_id' | 'project_id' | 'agent'>;

/** Operation that was refused, worded to follow *cannot*. */
type Operation = 'send a message' | 'answer an approval' | 'interrupt a turn' | 'use the session';

const MESSAGES: { readonly [code in AgentErrorCode]: (session: Named, operation: Operation) => string } = {
  agent_session_missing: () =>
    "the sandbox no longer has the session's files, or they are damaged; create another session",
  agent_bridge_missing: () => 'the bridge program did not arrive in the sandbox; recover the session to try again',
  agent_turn_active: () => 'a turn is active, and messages are never queued; poll until it has ended, or interrupt it',
  agent_turn_void: () => 'the turn was declared undelivered',
  agent_turn_not_active: () => 'no turn is active',
  agent_run_over: ({ id }, operation) =>
    `cannot ${operation}: the sandbox has booted its disk since; recover the session ${id}`,
  agent_bridge_stopped: ({ id }, operation) =>
    `cannot ${operation}: the session's bridge has stopped; recover the session ${id}`,
  agent_bridge_too_old: () =>
    'the bridge of this session is too old for requestKey; recover the session after its bridge has stopped, or ' +
    'create another one',
  agent_process_alive: () => 'a process of an earlier bridge of this session is alive; end it in the sandbox',
  agent_conversation_missing: () => 'the sandbox no longer has the saved conversation; create another session',
  agent_not_signed_in: ({ org_id, project_id, agent, sandbox_id }) =>
    "the agent has no credentials; store the project's model key (PUT " +
    `/v1/orgs/${org_id}/projects/${project_id}/agent-credentials/${agent}, or berth project agent-credentials set), ` +
    `or sign in inside the sandbox (berth agent sign-in ${sandbox_id})`,
  agent_not_installed: ({ agent }) =>
    `the sandbox's image does not have ${agent}. The operator adds it with ` +
    `\`./berth up --agents ${Object.keys(AGENT_LABELS).join(',')}\` (BERTH_AGENTS); then create another sandbox: ` +
    'an existing one keeps its image',
  agent_session_limit: () =>
    `a sandbox keeps ${AGENT_SESSIONS.kept} agent sessions and runs ${AGENT_SESSIONS.live} at once, fewer if its ` +
    'memory is short; wait for a turn to end, or resize the sandbox',
  agent_prompt_not_pending: () => 'no approval with this requestId, of this type and value, is pending',
  agent_unsupported: () => 'the sandbox or its host is too old for agent sessions; create another sandbox',
  agent_not_ready: ({ id }) => `the agent is not ready; try again, or recover the session ${id}`,
  agent_models_unavailable: () =>
    "the model gateway of the sandbox's host does not respond, so the agent could not reach its model; try again",
};

export function isAgentRefusal(error: unknown): error is HostError & { code: AgentErrorCode } {
  return error instanceof HostError && Object.hasOwn(AGENT_ERRORS, error.code);
}

/** The API's error of a refusal. */
export function refusalOf(code: AgentErrorCode, session: Named, operation: Operation = 'use the session'): CodedError {
  const known = CODES[code];
  const passes = known === 'agent_bridge_not_ready' || known === 'host_unavailable';
  return new CodedError(
    known,
    MESSAGES[code](session, operation),
    passes ? { retryAfterSeconds: RETRY_AFTER_SECONDS } : {},
  );
}

/** Converts the failure of a call about the session. */
export async function explainAgentFailure(
  context: ServiceContext,
  session: Named,
  error: unknown,
  consequence?: string,
  operation?: Operation,
): Promise<unknown> {
  if (isAgentRefusal(error)) return refusalOf(error.code, session, operation);
  return await explainHostFailure(context, session.sandbox_id, 'agent_session', error, consequence);
}
