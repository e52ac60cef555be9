// Changes of projects, and their credentials at model providers.
import { queryOptions } from '@tanstack/react-query';
import type { Agent, api } from '@berth/sdk';
import { berth } from '../session/client.ts';
import { change, queries } from './client.ts';
import { projectsQuery } from './orgs.ts';

/** Creates a project, or changes that with the id. */
export const saveProject = (orgId: string, projectId: string | null, body: api.UpdateProjectData['body']) =>
  change<unknown>(
    projectId === null
      ? berth.raw.createProject({ path: { orgId }, body })
      : berth.raw.updateProject({ path: { orgId, projectId }, body }),
    projectsQuery(orgId).queryKey,
  );

export const deleteProject = (orgId: string, projectId: string) =>
  change(berth.raw.deleteProject({ path: { orgId, projectId } }), projectsQuery(orgId).queryKey);

/** Sets machine hours per billing period; null: no cap of the project. */
export const setProjectCap = (orgId: string, projectId: string, sandboxMachineHourLimit: number | null) =>
  change(
    berth.raw.updateProjectUsageGuardrails({ path: { orgId, projectId }, body: { sandboxMachineHourLimit } }),
    projectsQuery(orgId).queryKey,
  );

const credentialsOf = (orgId: string, projectId: string) => ['orgs', orgId, 'projects', projectId, 'models'] as const;

export const modelKeyQuery = (orgId: string, projectId: string, agent: Agent) =>
  queryOptions({
    queryKey: [...credentialsOf(orgId, projectId), agent],
    queryFn: async ({ signal }) =>
      (await berth.raw.getAgentCredentials({ path: { orgId, projectId, agent }, signal })).agentCredentials,
  });

/**
 * Stores the key of the agent's model provider; null deletes it. Does not wait for the new state:
 * a form has forgotten the key by then.
 */
export async function setModelKey(orgId: string, projectId: string, agent: Agent, apiKey: string | null) {
  const path = { orgId, projectId, agent };
  try {
    if (apiKey === null) await berth.raw.deleteAgentCredentials({ path });
    else await berth.raw.putAgentCredentials({ path, body: { apiKey } });
  } finally {
    void queries.invalidateQueries({ queryKey: credentialsOf(orgId, projectId) });
  }
}
