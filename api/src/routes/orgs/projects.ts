// Wire format of projects.
import {
  createProject,
  deleteProject,
  getProject,
  listProjects,
  updateProject,
  type Project,
} from '@berth/contract/orgs/projects.ts';
import * as projects from '../../services/orgs/projects.ts';
import { bind } from '../../call/bind.ts';

export const projectRoutes = [
  bind(listProjects, async (context, { params, query }) => {
    const { rows, fields } = await projects.listProjects(context, params.orgId, query);
    return { projects: rows.map(viewProject), ...fields };
  }),
  bind(createProject, async (context, { actor, params, body }) => ({
    project: viewProject(await projects.createProject(context, actor, params.orgId, body)),
  })),
  bind(getProject, async (context, { params }) => ({
    project: viewProject(await projects.getProject(context, params.orgId, params.projectId)),
  })),
  bind(updateProject, async (context, { actor, params, body }) => ({
    project: viewProject(await projects.updateProject(context, actor, params.orgId, params.projectId, body)),
  })),
  bind(deleteProject, async (context, { actor, params }) => ({
    project: viewProject(await projects.deleteProject(context, actor, params.orgId, params.projectId)),
  })),
];

function viewProject(row: projects.ProjectRecord): Project {
  return {
    id: row.id,
    orgId: row.org_id,
    name: row.name,
    useCase: row.use_case,
    defaultRepository: row.default_repository,
    defaultBranch: row.default_branch,
    defaultProfile: row.default_profile,
    defaultPersistencePolicy: row.default_persistence_policy,
    defaultIdleMinutes: row.default_idle_minutes,
    defaultEgress: row.default_egress,
    wakeOnUse: row.wake_on_use,
    agentApprovals: row.agent_approvals,
    sandboxMachineHourLimit: row.sandbox_machine_hour_limit,
    metadata: row.metadata,
    hasRepoCredentials: row.has_repo_credentials,
    createdAt: row.created_at.toISOString(),
    updatedAt: row.updated_at.toISOString(),
    deletedAt: row.deleted_at?.toISOString() ?? null,
  };
}
