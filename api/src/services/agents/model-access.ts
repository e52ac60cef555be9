// Access of a sandbox's agents to models: the keys of its project, for the host, which has them in
// memory only. No log and no error holds a key.
import type { ModelAccess } from '@berth/protocol/calls/model-access.ts';
import { keysInForce, modelVersionOf } from '../../rules/agents/model-access.ts';
import { readAgentCredentials, type AgentCredentialRow } from '../../store/agents/credentials.ts';
import type { ServiceContext } from '../context/context.ts';
import { openText, UnsealError } from '../context/sealed.ts';
import type { Settings } from '../context/settings.ts';

export type ModelAccessContext = Pick<ServiceContext, 'db' | 'secretKey' | 'log'> & {
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
