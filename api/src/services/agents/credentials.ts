// Model credentials of projects: stored sealed, never returned.
import { AGENT_PROVIDERS, type PutAgentCredentials } from '@berth/contract/agents/credentials.ts';
import type { Actor } from '../../rules/access/access.ts';
import { requireModelEndpoint } from '../../rules/agents/model-endpoints.ts';
import { CodedError } from '../../rules/coded-error.ts';
import { insertActivity } from '../../store/activity/activity.ts';
import * as store from '../../store/agents/credentials.ts';
import type { AgentCredentialRow } from '../../store/agents/credentials.ts';
import type { DatabaseTransaction } from '../../store/database/schema.ts';
import { findProject, lockProject } from '../../store/orgs/projects.ts';
import type { ServiceContext } from '../context/context.ts';
import { sealText } from '../context/sealed.ts';
import { spreadModelAccess } from './model-access.ts';

export type { AgentCredentialRow };

export interface AgentOfProject {
  orgId: string;
  projectId: string;
  agent: string;
}

type Agent = keyof typeof AGENT_PROVIDERS;

/** Throws `agent_not_found`. */
export function requireAgent(agent: string): Agent {
  if (Object.hasOwn(AGENT_PROVIDERS, agent)) return agent as Agent;
  const agents = Object.keys(AGENT_PROVIDERS).join(' and ');
  throw new CodedError('agent_not_found', `there is no agent with this id; the agents are ${agents}`);
}

/** Undefined if none is stored. Throws `project_not_found`. */
export async function getAgentCredentials(
  { db }: ServiceContext,
  { orgId, projectId, agent }: AgentOfProject,
): Promise<AgentCredentialRow | undefined> {
  requireAgent(agent);
  if ((await findProject(db, orgId, projectId)) === undefined) throwNotFound();
  return await store.findAgentCredential(db, projectId, agent);
}

/**
 * Stores a key anew even if it equals the stored one, to avoid disclosing that. Throws
 * `project_not_found`, or `invalid_request` for an endpoint that the operator does not list.
 */
export async function putAgentCredentials(
  context: ServiceContext,
  actor: Actor,
  { orgId, projectId, agent }: AgentOfProject,
  { apiKey, endpoint: requested }: PutAgentCredentials,
): Promise<AgentCredentialRow> {
  const known = requireAgent(agent);
  const endpoint = requireModelEndpoint(context.settings.modelEndpoints, known, requested);
  const keys = context.secretKey.keysFor('agent-credentials');
  const sealed = sealText(keys, store.agentCredentialId(projectId, agent), apiKey);
  const stored = await context.db.transaction().execute(async (trx) => {
    await lock(trx, orgId, projectId);
    const row = await store.writeAgentCredential(trx, { projectId, agent, endpoint, sealed });
    const details = { agent, endpoint };
    await insertActivity(trx, { orgId, projectId, actor, kind: 'agent_credentials_updated', details });
    return row;
  });
  await spreadModelAccess(context, { orgId, projectId, agent: known });
  return stored;
}

/** Records nothing if none is stored. Throws `project_not_found`. */
export async function deleteAgentCredentials(
  context: ServiceContext,
  actor: Actor,
  { orgId, projectId, agent }: AgentOfProject,
): Promise<void> {
  const known = requireAgent(agent);
  const isChanged = await context.db.transaction().execute(async (trx) => {
    await lock(trx, orgId, projectId);
    if (!(await store.deleteAgentCredential(trx, projectId, agent))) return false;
    await insertActivity(trx, { orgId, projectId, actor, kind: 'agent_credentials_removed', details: { agent } });
    return true;
  });
  if (isChanged) await spreadModelAccess(context, { orgId, projectId, agent: known });
}

async function lock(trx: DatabaseTransaction, orgId: string, projectId: string): Promise<void> {
  if ((await lockProject(trx, orgId, projectId, 'change')) === undefined) throwNotFound();
}

/** Deleted concurrently, after the access decision. */
function throwNotFound(): never {
  throw new CodedError('project_not_found', 'there is no project with this id');
}
