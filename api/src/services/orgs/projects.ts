// Projects: list, create, change, delete. Also their repository credentials, which are opened for
// clones only.
import {
  DEFAULT_USE_CASE,
  repoCredentials,
  type CreateProjectBody,
  type RepoCredentials,
  type UpdateProjectBody,
} from '@berth/contract/orgs/projects.ts';
import type { PageQuery } from '@berth/contract/route/page.ts';
import type { Actor } from '../../rules/access/access.ts';
import { canonicalJson } from '../../rules/canonical-json.ts';
import { CodedError } from '../../rules/coded-error.ts';
import { planOrNull } from '../../rules/billing/plan-catalogue.ts';
import { requireShare } from '../../rules/orgs/fair-shares.ts';
import { readInPages, type PageFields } from '../../rules/page.ts';
import { requireRepositoryAllowed } from '../../rules/clones/repository.ts';
import { deleteAgentCredentialsOf } from '../../store/agents/credentials.ts';
import { insertActivity } from '../../store/activity/activity.ts';
import { newId } from '../../store/database/ids.ts';
import { countProjects, lockOrg } from '../../store/orgs/fair-shares.ts';
import { findSubscription } from '../../store/billing/subscriptions.ts';
import * as store from '../../store/orgs/projects.ts';
import type { ProjectRecord } from '../../store/orgs/projects.ts';
import type { DatabaseTransaction } from '../../store/database/schema.ts';
import type { ServiceContext } from '../context/context.ts';
import { hasOrgPermission, requireOrgPermission } from '../access/access.ts';
import { openText, sealText } from '../context/sealed.ts';

export type { ProjectRecord };

/** The org's projects, newest first; all, or the requested page. */
export async function listProjects(
  context: ServiceContext,
  orgId: string,
  query: PageQuery,
): Promise<{ rows: ProjectRecord[]; fields: PageFields }> {
  return await readInPages('projects', query, (page) => store.listProjects(context.db, orgId, page));
}

/** Throws `project_not_found`. */
export async function getProject(context: ServiceContext, orgId: string, projectId: string): Promise<ProjectRecord> {
  return (await store.findProject(context.db, orgId, projectId)) ?? throwNotFound();
}

/** Throws `project_limit`. */
export async function createProject(
  context: ServiceContext,
  actor: Actor,
  orgId: string,
  body: CreateProjectBody,
): Promise<ProjectRecord> {
  requireDefaultAllowed(context, body);
  if (body.agentApprovals === 'never') await requireOrgPermission(context, actor, orgId, 'agent_approvals.disable');
  const id = newId('project');
  return await context.db.transaction().execute(async (trx) => {
    await lockOrg(trx, orgId);
    const plan = planOrNull(context.plans, await findSubscription(trx, orgId));
    requireShare(context.settings.shares, 'projectsPerOrg', await countProjects(trx, orgId), plan);
    const project = await store.insertProject(trx, {
      id,
      org_id: orgId,
      name: body.name ?? `project-${id.slice(4, 12)}`,
      use_case: body.useCase ?? DEFAULT_USE_CASE,
      default_profile: body.defaultProfile ?? null,
      default_repository: body.defaultRepository ?? null,
      default_branch: body.defaultBranch ?? null,
      default_persistence_policy: body.defaultPersistencePolicy ?? null,
      default_idle_minutes: body.defaultIdleMinutes ?? null,
      default_egress: body.defaultEgress == null ? null : JSON.stringify(body.defaultEgress),
      wake_on_use: body.wakeOnUse ?? false,
      agent_approvals: body.agentApprovals ?? 'ask',
      metadata: JSON.stringify(body.metadata ?? {}),
      repo_credentials_sealed: seal(context, id, body.repoCredentials ?? null),
      created_by: actor.userId,
    });
    await insertActivity(trx, {
      orgId,
      projectId: id,
      actor,
      kind: 'project_created',
      details: { name: project.name },
    });
    return project;
  });
}

/**
 * Changes the fields in the body; absent fields stay. Writes nothing if nothing differs. Given
 * credentials are always stored anew, to avoid disclosing whether they equal the stored ones.
 * Throws `project_not_found`.
 */
export async function updateProject(
  context: ServiceContext,
  actor: Actor,
  orgId: string,
  projectId: string,
  body: UpdateProjectBody,
): Promise<ProjectRecord> {
  requireDefaultAllowed(context, body);
  const mayDisable =
    body.agentApprovals !== 'never' || (await hasOrgPermission(context, actor, orgId, 'agent_approvals.disable'));
  return await context.db.transaction().execute(async (trx) => {
    const before = await lock(trx, orgId, projectId, 'change');
    const { columns, changes } = changesOf(before, body);
    if (!mayDisable && changes['agentApprovals'] !== undefined) {
      throw new CodedError(
        'permission_denied',
        'agentApprovals: never requires the permission agent_approvals.disable',
      );
    }
    const fields = Object.keys(changes);
    if (body.repoCredentials !== undefined && (body.repoCredentials !== null || before.has_repo_credentials)) {
      columns.repo_credentials_sealed = seal(context, projectId, body.repoCredentials);
      fields.push('repoCredentials');
    }
    if (fields.length === 0) return before;
    const project = await store.updateProject(trx, projectId, columns);
    await insertActivity(trx, { orgId, projectId, actor, kind: 'project_updated', details: { fields, changes } });
    return project;
  });
}

/**
 * Deletes a project and, permanently, its credentials; its activity rows stay. Throws
 * `project_not_found`, or `project_has_sandboxes` while it has some. A create locks the project row
 * until it commits its sandbox (services/sandboxes/create.ts): either the sandbox is counted here,
 * or the create finds no project.
 */
export async function deleteProject(
  context: ServiceContext,
  actor: Actor,
  orgId: string,
  projectId: string,
): Promise<ProjectRecord> {
  return await context.db.transaction().execute(async (trx) => {
    const before = await lock(trx, orgId, projectId, 'delete');
    const count = await store.countSandboxes(trx, before);
    if (count > 0) {
      const sandboxes = count === 1 ? '1 sandbox' : `${count} sandboxes`;
      throw new CodedError(
        'project_has_sandboxes',
        `the project still has ${sandboxes}; destroy ${count === 1 ? 'it' : 'them'} first`,
      );
    }
    await deleteAgentCredentialsOf(trx, projectId);
    const project = await store.markProjectDeleted(trx, projectId);
    await insertActivity(trx, { orgId, projectId, actor, kind: 'project_deleted', details: { name: before.name } });
    return project;
  });
}

function requireDefaultAllowed({ settings }: ServiceContext, { defaultRepository }: UpdateProjectBody): void {
  if (defaultRepository != null) requireRepositoryAllowed(defaultRepository, settings.git, 'body.defaultRepository');
}

/**
 * Credentials for a clone in the project; null if it has none. Throws {@link UnsealError} if the
 * stored value does not open.
 */
export async function openRepoCredentials(
  context: Pick<ServiceContext, 'db' | 'secretKey'>,
  projectId: string,
): Promise<RepoCredentials | null> {
  const sealed = await store.findSealedRepoCredentials(context.db, projectId);
  if (sealed === null) return null;
  return repoCredentials.parse(JSON.parse(openText(context.secretKey.keysFor('repo-credentials'), projectId, sealed)));
}

function seal(context: ServiceContext, projectId: string, credentials: RepoCredentials | null): Buffer | null {
  if (credentials === null) return null;
  return sealText(context.secretKey.keysFor('repo-credentials'), projectId, JSON.stringify(credentials));
}

/** Changeable fields and their columns. Credentials are handled separately. */
const COLUMNS = {
  name: 'name',
  useCase: 'use_case',
  defaultProfile: 'default_profile',
  defaultPersistencePolicy: 'default_persistence_policy',
  defaultRepository: 'default_repository',
  defaultBranch: 'default_branch',
  defaultIdleMinutes: 'default_idle_minutes',
  defaultEgress: 'default_egress',
  wakeOnUse: 'wake_on_use',
  agentApprovals: 'agent_approvals',
  metadata: 'metadata',
} as const satisfies {
  [field in Exclude<keyof UpdateProjectBody, 'repoCredentials' | 'sandboxMachineHourLimit'>]-?: keyof ProjectRecord;
};

/** Differences between body and row: columns to write, and fields with values for the feed. */
function changesOf(
  before: ProjectRecord,
  body: UpdateProjectBody,
): { columns: store.ProjectChange; changes: Record<string, { from: unknown; to: unknown }> } {
  const columns: Partial<Record<keyof store.ProjectChange, unknown>> = {};
  const changes: Record<string, { from: unknown; to: unknown }> = {};
  for (const [field, column] of Object.entries(COLUMNS) as [
    keyof typeof COLUMNS,
    (typeof COLUMNS)[keyof typeof COLUMNS],
  ][]) {
    const [from, to] = [before[column], body[field]];
    if (to === undefined || canonicalJson(from) === canonicalJson(to)) continue;
    const isJson = column === 'metadata' || (column === 'default_egress' && to !== null);
    columns[column] = isJson ? JSON.stringify(to) : to;
    changes[field] = { from, to };
  }
  return { columns: columns as store.ProjectChange, changes };
}

async function lock(
  trx: DatabaseTransaction,
  orgId: string,
  projectId: string,
  strength: 'change' | 'delete',
): Promise<ProjectRecord> {
  return (await store.lockProject(trx, orgId, projectId, strength)) ?? throwNotFound();
}

/** Deleted concurrently, after the access decision. */
function throwNotFound(): never {
  throw new CodedError('project_not_found', 'there is no project with this id');
}
