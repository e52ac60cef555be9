// Access of a sandbox's agents to models: the keys of its project, for the host, which has them in
// memory only. No log and no error holds a key.
import type { ModelAccess } from '@berth/protocol/calls/model-access.ts';
import { keysInForce, modelVersionOf } from '../../rules/agents/model-access.ts';
import { readAgentCredentials, type AgentCredentialRow } from '../../store/agents/credentials.ts';
import { listAwakeWithSessions } from '../../store/agents/sessions.ts';
import type { ServiceContext } from '../context/context.ts';
import { openText, UnsealError } from '../context/sealed.ts';
import type { Settings } from '../context/settings.ts';

/** Concurrent calls after a change, and the deadline of all of them. */
const AT_ONCE = 16;
const SPREAD_MS = 2_000;

type ModelAccessContext = Pick<ServiceContext, 'db' | 'secretKey' | 'log'> & {
  settings: Pick<Settings, 'modelEndpoints'>;
};

/**
 * Access for a VM of the project. Without a key that no secret key opens: that is logged, and the
 * agent has none until it is stored again.
 */
export async function readModelAccess(
  context: ModelAccessContext,
  { orgId, projectId }: { orgId: string; projectId: string },
): Promise<ModelAccess> {
  const { asOfMs, credentials } = await readAgentCredentials(context.db, projectId);
  const inForce = keysInForce(credentials, context.settings.modelEndpoints);
  const accessOf = (agent: string) => {
    const credential = inForce.find((one) => one.agent === agent);
    const key = credential === undefined ? null : openKey(context, credential);
    return credential === undefined || key === null ? null : { endpoint: credential.endpoint, key };
  };
  const agents = { agent_one: accessOf('agent_one'), agent_two: accessOf('agent_two') };
  return { orgId, asOfMs, version: modelVersionOf(inForce), agents };
}

interface SandboxOnHost {
  id: string;
  epoch: number;
  host_url: string;
  org_id: string;
  project_id: string;
}

/**
 * Gives the sandbox's VM the keys of its project. Returns false, and calls no host, if there is
 * none for the agent. Rejects with `HostError`.
 */
export async function giveModelAccess(
  context: ServiceContext,
  { id, epoch, host_url: hostUrl, org_id: orgId, project_id: projectId }: SandboxOnHost,
  agent: string,
): Promise<boolean> {
  const access = await readModelAccess(context, { orgId, projectId });
  if (!Object.entries(access.agents).some(([name, key]) => name === agent && key !== null)) return false;
  await context.hosts.at(hostUrl).setModelAccess(id, { epoch, ...access });
  return true;
}

/**
 * Gives the project's VMs with agent sessions its keys after a change, within 2 s. Never rejects
 * for a host: the reconciler repeats what failed.
 */
export async function spreadModelAccess(
  context: ServiceContext,
  { orgId, projectId }: { orgId: string; projectId: string },
): Promise<void> {
  const waiting = await listAwakeWithSessions(context.db, projectId);
  if (waiting.length === 0) return;
  const access = await readModelAccess(context, { orgId, projectId });
  const signal = AbortSignal.timeout(SPREAD_MS);
  const failed: string[] = [];
  const sendNext = async (): Promise<void> => {
    for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) {
      const { id, epoch, host_url: hostUrl } = next;
      await context.hosts
        .at(hostUrl)
        .setModelAccess(id, { epoch, ...access }, { signal })
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
