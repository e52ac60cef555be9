// Access of a sandbox's agent to models: the key that its project has for this agent, for the host,
// which has it in memory only. No log and no error holds a key.
import type { Agent } from '@berth/contract/sandboxes/fields.ts';
import type { ModelAccess } from '@berth/protocol/calls/model-access.ts';
import { keysInForce, modelVersionOf } from '../../rules/agents/model-access.ts';
import { readAgentCredentials, type AgentCredentialRow } from '../../store/agents/credentials.ts';
import { mayUseModels, listAwakeUsingModels } from '../../store/agents/sessions.ts';
import type { ServiceContext } from '../context/context.ts';
import { openText, UnsealError } from '../context/sealed.ts';
import type { Settings } from '../context/settings.ts';

/** Concurrent calls after a change, and the deadline of all of them. */
const AT_ONCE = 16;
const SPREAD_MS = 2_000;

type ModelAccessContext = Pick<ServiceContext, 'db' | 'secretKey' | 'log'> & {
  settings: Pick<Settings, 'modelEndpoints'>;
};

interface ProjectOf {
  org_id: string;
  project_id: string;
}

/**
 * Access for VMs of the project, by their agent; a VM never gets the key of another agent. Without
 * a key that no secret key opens: that is logged, and the agent has none until it is stored again.
 */
async function readModelAccesses(
  context: ModelAccessContext,
  { org_id: orgId, project_id: projectId }: ProjectOf,
): Promise<(agent: string) => ModelAccess> {
  const { asOfMs, credentials } = await readAgentCredentials(context.db, projectId);
  const inForce = keysInForce(credentials, context.settings.modelEndpoints);
  return (agent) => {
    const keys = inForce.filter((one) => one.agent === agent);
    const accesses = keys.flatMap((one) => {
      const key = openKey(context, one);
      return key === null ? [] : [[agent, { endpoint: one.endpoint, key }]];
    });
    const agents = { agent_one: null, agent_two: null, ...Object.fromEntries(accesses) };
    return { orgId, asOfMs, version: modelVersionOf(keys), agents };
  };
}

/** Access for a VM of the sandbox: none without an agent session that may use it. */
export async function readModelAccess(
  context: ModelAccessContext,
  sandbox: ProjectOf & { id: string; agent: string },
): Promise<ModelAccess> {
  const access = (await readModelAccesses(context, sandbox))(sandbox.agent);
  // After the read of the keys: a session that begins now gives access of a later time.
  if (await mayUseModels(context.db, sandbox.id)) return access;
  return { ...access, version: modelVersionOf([]), agents: { agent_one: null, agent_two: null } };
}

interface SandboxOnHost extends ProjectOf {
  id: string;
  epoch: number;
  host_url: string;
  agent: string;
}

/**
 * Gives the sandbox's VM the key of its agent. Returns false, and calls no host, if the project has
 * none. Rejects with `HostError`.
 */
export async function giveModelAccess(context: ServiceContext, sandbox: SandboxOnHost): Promise<boolean> {
  const { id, epoch, host_url: hostUrl } = sandbox;
  const access = await readModelAccess(context, sandbox);
  if (Object.values(access.agents).every((key) => key === null)) return false;
  await context.hosts.at(hostUrl).setModelAccess(id, { epoch, ...access });
  return true;
}

/** Takes the key from a VM whose only session was not created. The reconciler retries it. */
export async function withdrawModelAccess(context: ServiceContext, sandbox: SandboxOnHost): Promise<void> {
  const { id, epoch, host_url: hostUrl } = sandbox;
  try {
    const access = await readModelAccess(context, sandbox);
    await context.hosts.at(hostUrl).setModelAccess(id, { epoch, ...access });
  } catch (error) {
    context.log.warn({ err: error, sandboxId: id }, 'could not take the model key from a VM without a session');
  }
}

/**
 * Gives the project's VMs with sessions of the agent its key after a change, within 2 s. Never
 * rejects for a host: the reconciler repeats what failed.
 */
export async function spreadModelAccess(
  context: ServiceContext,
  { orgId, projectId, agent }: { orgId: string; projectId: string; agent: Agent },
): Promise<void> {
  const waiting = await listAwakeUsingModels(context.db, projectId, agent);
  if (waiting.length === 0) return;
  const accessOf = await readModelAccesses(context, { org_id: orgId, project_id: projectId });
  const signal = AbortSignal.timeout(SPREAD_MS);
  const failed: string[] = [];
  const sendNext = async (): Promise<void> => {
    for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) {
      const { id, epoch, host_url: hostUrl } = next;
      await context.hosts
        .at(hostUrl)
        .setModelAccess(id, { epoch, ...accessOf(agent) }, { signal })
        .catch(() => failed.push(id));
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, sendNext));
  if (failed.length > 0)
    context.log.warn({ projectId, sandboxIds: failed.slice(0, 10) }, `${failed.length} VMs lack the new model keys`);
}

function openKey({ secretKey, log }: ModelAccessContext, credential: AgentCredentialRow): string | null {
  try {
    return openText(secretKey.keysFor('agent-credentials'), credential.id, credential.key_sealed);
  } catch (error) {
    if (!(error instanceof UnsealError)) throw error;
    const { project_id: projectId, agent } = credential;
    log.error({ err: error, projectId, agent }, 'cannot decrypt the model key of a project: store it again');
    return null;
  }
}
