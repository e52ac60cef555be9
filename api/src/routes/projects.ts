// Projects on the wire.
import { profile } from '@berth/contract/machine-sizes.ts';
import { createProject, listProjects, type Project } from '@berth/contract/projects.ts';
import { persistencePolicy } from '@berth/contract/sandbox-fields.ts';
import * as projects from '../services/projects.ts';
import { bind } from './bind.ts';

export const projectRoutes = [
  bind(listProjects, async (context, { params }) => ({ projects: (await projects.listProjects(context, params.orgId)).map(viewProject) })),
  bind(createProject, async (context, { actor, params, body }) => ({
    project: viewProject(await projects.createProject(context, actor, params.orgId, body)),
  })),
];

function viewProject(row: projects.ProjectRow): Project {
  return {
    id: row.id,
    orgId: row.org_id,
    name: row.name,
    useCase: row.use_case,
    defaultRepository: row.default_repository,
    defaultBranch: row.default_branch,
    defaultProfile: profile.nullable().parse(row.default_profile),
    defaultPersistencePolicy: persistencePolicy.nullable().parse(row.default_persistence_policy),
    defaultIdleMinutes: row.default_idle_minutes,
    wakeOnUse: row.wake_on_use,
    sandboxMachineHourLimit: row.sandbox_machine_hour_limit,
    metadata: row.metadata,
    hasRepoCredentials: row.repo_credentials_sealed !== null,
    createdAt: row.created_at.toISOString(),
    updatedAt: row.updated_at.toISOString(),
    deletedAt: row.deleted_at?.toISOString() ?? null,
  };
}
