// Rows of projects. SQL only. Only a dedicated query reads sealed credentials, never one that
// returns, lists or finds projects.
import { sql, type Updateable } from 'kysely';
import type { PageRequest, Slice } from '../../rules/page.ts';
import { isId } from '../database/ids.ts';
import { selectSlice } from '../database/pages.ts';
import type { Database, DatabaseTransaction, NewProject, ProjectRow } from '../database/schema.ts';
import type { ProjectTable } from '../database/tables-sandboxes.ts';

/** A project row without its sealed columns. */
export type ProjectRecord = Omit<ProjectRow, 'repo_credentials_sealed'> & { has_repo_credentials: boolean };

const SHOWN = [
  'id',
  'org_id',
  'name',
  'use_case',
  'default_repository',
  'default_branch',
  'default_profile',
  'default_persistence_policy',
  'default_idle_minutes',
  'default_egress',
  'sandbox_machine_hour_limit',
  'wake_on_use',
  'agent_approvals',
  'metadata',
  'created_by',
  'created_at',
  'updated_at',
  'deleted_at',
] as const satisfies readonly (keyof ProjectRow)[];

const HAS_REPO_CREDENTIALS = sql<boolean>`repo_credentials_sealed is not null`.as('has_repo_credentials');

/**
 * Statement time, not transaction start: the transaction may have waited for the row since. Keeps
 * changes of a row in order.
 */
const STATEMENT_TIME = sql<Date>`statement_timestamp()`;

export async function insertProject(db: Database, project: NewProject): Promise<ProjectRecord> {
  return await db
    .insertInto('project')
    .values(project)
    .returning([...SHOWN, HAS_REPO_CREDENTIALS])
    .executeTakeFirstOrThrow();
}

/** A project of the org. Projects of other orgs and deleted projects are not found. */
export async function findProject(db: Database, orgId: string, projectId: string): Promise<ProjectRecord | undefined> {
  return await selectOne(db, orgId, projectId).executeTakeFirst();
}

/** Permanent facts of a project, deleted or not. Projects of other orgs are not found. */
export async function findProjectOrDeleted(
  db: Database,
  orgId: string,
  projectId: string,
): Promise<Pick<ProjectRow, 'id' | 'sandbox_machine_hour_limit' | 'deleted_at'> | undefined> {
  if (!isId('project', projectId)) return undefined;
  const query = db.selectFrom('project').select(['id', 'sandbox_machine_hour_limit', 'deleted_at']);
  return await query.where('org_id', '=', orgId).where('id', '=', projectId).executeTakeFirst();
}

/**
 * Locks a project of the org until the transaction ends. `stay`: prevents its deletion while
 * something is created in it; shared. `change`: excludes other changes but not creates, since
 * overlapping creates would starve a change. `delete`: exclusive. Take it before any lock on
 * sandboxes, subscriptions or hosts.
 */
export async function lockProject(
  trx: DatabaseTransaction,
  orgId: string,
  projectId: string,
  strength: 'stay' | 'change' | 'delete',
): Promise<ProjectRecord | undefined> {
  const query = selectOne(trx, orgId, projectId);
  if (strength === 'stay') return await query.forKeyShare().executeTakeFirst();
  return await (strength === 'change' ? query.forNoKeyUpdate() : query.forUpdate()).executeTakeFirst();
}

/** An org's projects, newest first, without deleted ones; all or one page. */
export async function listProjects(
  db: Database,
  orgId: string,
  page: PageRequest | null,
): Promise<Slice<ProjectRecord>> {
  const query = db
    .selectFrom('project')
    .select([...SHOWN, HAS_REPO_CREDENTIALS])
    .where('org_id', '=', orgId)
    .where('deleted_at', 'is', null);
  return await selectSlice(query, { at: 'created_at', tie: 'id', direction: 'desc' }, page);
}

export async function findOldestProject(db: Database, orgId: string): Promise<Pick<ProjectRow, 'id'> | undefined> {
  const query = db.selectFrom('project').select('id').where('org_id', '=', orgId).where('deleted_at', 'is', null);
  return await query.orderBy('created_at').orderBy('id').limit(1).executeTakeFirst();
}

/** Number of the project's sandboxes, of any status except deleted. */
export async function countSandboxes(db: Database, project: Pick<ProjectRow, 'id' | 'org_id'>): Promise<number> {
  const { count } = await db
    .selectFrom('sandbox')
    .select((build) => build.fn.countAll<string>().as('count'))
    .where('org_id', '=', project.org_id)
    .where('project_id', '=', project.id)
    .where('status', '<>', 'deleted')
    .executeTakeFirstOrThrow();
  return Number(count);
}

export type ProjectChange = Omit<
  Updateable<ProjectTable>,
  'id' | 'org_id' | 'created_by' | 'created_at' | 'updated_at' | 'deleted_at'
>;

/** The caller holds the row lock. */
export async function updateProject(
  trx: DatabaseTransaction,
  projectId: string,
  change: ProjectChange,
): Promise<ProjectRecord> {
  return await write(trx, projectId, change);
}

/**
 * Marks the project deleted and drops its credentials. The row stays because other rows refer to
 * it. The caller holds the row lock.
 */
export async function markProjectDeleted(trx: DatabaseTransaction, projectId: string): Promise<ProjectRecord> {
  return await write(trx, projectId, { repo_credentials_sealed: null, deleted_at: STATEMENT_TIME });
}

/** The sealed credentials; null if there are none or the project is deleted. */
export async function findSealedRepoCredentials(db: Database, projectId: string): Promise<Buffer | null> {
  const row = await db
    .selectFrom('project')
    .select('repo_credentials_sealed')
    .where('id', '=', projectId)
    .where('deleted_at', 'is', null)
    .executeTakeFirst();
  return row?.repo_credentials_sealed ?? null;
}

function selectOne(db: Database, orgId: string, projectId: string) {
  return db
    .selectFrom('project')
    .select([...SHOWN, HAS_REPO_CREDENTIALS])
    .where('org_id', '=', orgId)
    .where('id', '=', projectId)
    .where('deleted_at', 'is', null);
}

async function write(
  trx: DatabaseTransaction,
  projectId: string,
  columns: ProjectChange & { deleted_at?: typeof STATEMENT_TIME },
): Promise<ProjectRecord> {
  return await trx
    .updateTable('project')
    .set({ ...columns, updated_at: STATEMENT_TIME })
    .where('id', '=', projectId)
    .returning([...SHOWN, HAS_REPO_CREDENTIALS])
    .executeTakeFirstOrThrow();
}
