// Starts the bridges of agent sessions.
import { startAgent } from '@berth/protocol/calls/agents.ts';
import type { Actor } from '../../rules/access/access.ts';
import * as store from '../../store/agents/sessions.ts';
import type { AgentSessionRow } from '../../store/agents/sessions.ts';
import { markUnattended } from '../../store/agents/unattended.ts';
import { findProject } from '../../store/orgs/projects.ts';
import type { ServiceContext } from '../context/context.ts';
import type { SandboxInUse } from '../sandboxes/use.ts';
import { stageVariables } from '../sandboxes/variables.ts';
import { explainAgentFailure, isAgentRefusal, refusalOf } from './failure.ts';
import { giveModelAccess, withdrawModelAccess } from './model-access.ts';
import { note } from './records/entries.ts';
import { recordViewIn } from './records/views.ts';

/**
 * Starts the bridge of a session, or finds it ready. Goes on when the caller disconnects. `reopen`
 * recovers a terminal, also without its saved conversation.
 */
export async function startSession(
  context: ServiceContext,
  actor: Actor,
  sandbox: SandboxInUse,
  session: AgentSessionRow,
  mode: 'create' | 'recover' | 'reopen',
): Promise<void> {
  const { id, project_id: projectId, agent, surface } = session;
  const isTerminal = surface === 'terminal';
  const project = await findProject(context.db, session.org_id, projectId);
  const undo = async (): Promise<void> => {
    await store.deleteAgentSession(context.db, id);
    if (gateway) await withdrawModelAccess(context, sandbox);
  };
  if (mode !== 'create') await store.noteRecover(context.db, id);
  const prepare = async () => {
    const staged = await stageVariables(context, sandbox);
    return { gateway: await giveModelAccess(context, sandbox), ...staged };
  };
  const { gateway, ...staged } = await prepare().catch(async (error: unknown) => {
    if (mode === 'create') await store.deleteAgentSession(context.db, id);
    throw await explainAgentFailure(context, session, error);
  });
  // No bridge of the session ever reported: its create was lost, and the guest may lack its files.
  const isNew = mode !== 'recover' || session.bridge_version === null;
  // In a terminal, the program asks the person who uses it.
  const approvals = isTerminal ? 'ask' : (project?.agent_approvals ?? 'ask');
  // Before the start: a change of the project meanwhile reaches the session when it is ready.
  if (approvals === 'never') await markUnattended(context.db, id);
  const order = { agent, mode: isNew ? 'create' : 'recover', approvals, gateway, ...staged } as const;
  // Guests of earlier releases know managed sessions only.
  const body = isTerminal ? { ...order, surface } : order;
  const params = { sessionId: id };
  const request = { vmId: sandbox.id, epoch: sandbox.epoch, params, body };
  let started;
  try {
    started = await context.hosts.at(sandbox.host_url).call(startAgent, request);
  } catch (error) {
    // The guest has made nothing, or the caller can recover what it made.
    if (mode === 'create' && isAgentRefusal(error)) await undo();
    else if (mode === 'create') await store.stopLostStarts(context.db, { sessionId: id });
    throw await explainAgentFailure(context, session, error, '; the session may or may not have started');
  }

  const view = started.session;
  const refused = started.outcome === 'refused' ? started.code : null;
  const keeps = mode !== 'create' || refused === null || refused === 'agent_not_ready';
  if (!keeps && view === null) {
    await undo();
  } else {
    const creator = mode === 'create' ? { creator: actor } : {};
    await context.db.transaction().execute(async (trx) => {
      if (mode !== 'create') await store.writeEntryTimes(trx, id, { stop_noted_at: null });
      if (view !== null) await recordViewIn(trx, id, { epoch: sandbox.epoch, view, ...creator });
      if (mode !== 'create')
        await note(trx, session, actor, 'agent_session_recovered', { agent, ...(refused === null ? {} : { refused }) });
    });
  }
  if (refused !== null) throw refusalOf(refused, session);
}
