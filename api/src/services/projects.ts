// Projects: listing and creating them.
import { DEFAULT_USE_CASE, type CreateProjectBody } from '@berth/contract/projects.ts';
import type { Actor } from '../rules/access.ts';
import { insertActivity } from '../store/activity.ts';
import { newId } from '../store/ids.ts';
import { insertProject, listProjects as selectProjects } from '../store/projects.ts';
import type { ProjectRow } from '../store/schema.ts';
import type { ServiceContext } from './context.ts';

export type { ProjectRow };

export async function listProjects(context: ServiceContext, orgId: string): Promise<ProjectRow[]> {
  return await selectProjects(context.db, orgId);
}

export async function createProject(context: ServiceContext, actor: Actor, orgId: string, body: CreateProjectBody): Promise<ProjectRow> {
  const id = newId('project');
  return await context.db.transaction().execute(async (trx) => {
    const project = await insertProject(trx, {
      id,
      org_id: orgId,
      name: body.name ?? `project-${id.slice(4, 12)}`,
      use_case: body.useCase ?? DEFAULT_USE_CASE,
      default_profile: body.defaultProfile ?? null,
      default_repository: body.defaultRepository ?? null,
      default_branch: body.defaultBranch ?? null,
      default_persistence_policy: body.defaultPersistencePolicy ?? null,
      default_idle_minutes: body.defaultIdleMinutes ?? null,
      wake_on_use: body.wakeOnUse ?? false,
      created_by: actor.userId,
    });
    await insertActivity(trx, { orgId, projectId: id, actor, kind: 'project_created', details: { name: project.name } });
    return project;
  });
}
