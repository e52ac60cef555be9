// The rows of projects. SQL only.
import type { Database, NewProject, ProjectRow } from './schema.ts';

export async function insertProject(db: Database, project: NewProject): Promise<ProjectRow> {
  return await db.insertInto('project').values(project).returningAll().executeTakeFirstOrThrow();
}

/** A project of the given org; one of another org, or a deleted one, is not found. */
export async function findProject(db: Database, orgId: string, projectId: string): Promise<ProjectRow | undefined> {
  return await db
    .selectFrom('project')
    .selectAll()
    .where('org_id', '=', orgId)
    .where('id', '=', projectId)
    .where('deleted_at', 'is', null)
    .executeTakeFirst();
}

/** An org's projects, newest first. */
export async function listProjects(db: Database, orgId: string): Promise<ProjectRow[]> {
  return await db
    .selectFrom('project')
    .selectAll()
    .where('org_id', '=', orgId)
    .where('deleted_at', 'is', null)
    .orderBy('created_at', 'desc')
    .orderBy('id')
    .execute();
}
