// `berth project ls`, `get`, `use` and `rm`.
import { egressText } from '../sandboxes/egress.ts';
import type { Project } from '@berth/sdk';
import type { CliContext } from '../program/context.ts';
import { UsageError } from '../output/failure.ts';
import { plainText } from '../output/plain-text.ts';
import { since } from '../output/time.ts';
import { confirmLoss } from '../interaction/prompt.ts';
import { checkResourceId } from '../service/resource-id.ts';
import type { Input } from '../program/command-spec.ts';
import { oneOf, useInProfile } from './orgs.ts';

export async function listProjects({ connect, out, signal }: CliContext): Promise<void> {
  const { berth, orgId, chosen } = await connect();
  const answer = await berth.raw.listProjects({ path: { orgId: await orgId() }, signal });
  if (out.json) return out.object(answer);
  const meant = chosen.projectId ?? (answer.projects.length === 1 ? answer.projects[0]?.id : undefined);
  out.table(
    [
      { title: 'id', value: ({ id }) => id, whole: true },
      { title: 'name', value: ({ name }) => name },
      { title: 'in use', value: ({ id }) => (id === meant ? 'yes' : null) },
      { title: 'use case', value: ({ useCase }) => useCase },
      { title: 'repository', value: ({ defaultRepository }) => defaultRepository },
      { title: 'created', value: ({ createdAt }) => since(createdAt) },
    ],
    answer.projects,
    'no projects; create one with berth project create NAME',
  );
}

export async function getProject(context: CliContext, { args: [typed] }: Input): Promise<void> {
  const { connect, out, signal } = context;
  const { berth, orgId } = await connect();
  const projectId = await projectMeant(context, typed);
  const answer = await berth.raw.getProject({ path: { orgId: await orgId(), projectId }, signal });
  if (out.json) out.object(answer);
  else showProject(context, answer.project);
}

export async function useProject(context: CliContext, { args: [typed = ''] }: Input): Promise<void> {
  const { connect, out, signal } = context;
  const connection = await connect();
  const orgId = await connection.orgId();
  const { id, name } = oneOf('project', await connection.berth.projects.list({ orgId, signal }), typed);
  await useInProfile(context, connection, (profile) => ({ ...profile, orgId, projectId: id }));
  out.line(`switched to project ${id} (${plainText(name)})`);
}

export async function removeProject(
  context: CliContext,
  { args: [typed], options }: Input<{ yes?: true }>,
): Promise<void> {
  const { connect, out, signal } = context;
  const { berth, orgId } = await connect();
  const projectId = checkResourceId('project', typed);
  await confirmLoss(context, `Remove the project ${projectId}?`, { ...options, wide: true });
  const answer = await berth.raw.deleteProject({ path: { orgId: await orgId(), projectId }, signal });
  if (out.json) out.object(answer);
  else out.line(`removed the project ${projectId} (${plainText(answer.project.name)})`);
}

/** Resolves with the given project, or the current one. */
export async function projectMeant(
  { connect, flags }: Pick<CliContext, 'connect' | 'flags'>,
  typed: string | undefined,
): Promise<string> {
  if (typed === undefined) return await (await connect()).projectId();
  if (flags.project !== undefined) throw new UsageError('project given twice: use either the argument or --project');
  return checkResourceId('project', typed);
}

export function showProject({ out }: Pick<CliContext, 'out'>, project: Project): void {
  out.fields([
    ['id', project.id],
    ['name', project.name],
    ['org', project.orgId],
    ['use case', project.useCase],
    ['default repository', project.defaultRepository],
    ['default branch', project.defaultBranch],
    ['default profile', project.defaultProfile],
    ['default persistence policy', project.defaultPersistencePolicy],
    ['default idle minutes', project.defaultIdleMinutes],
    ['default egress', project.defaultEgress && egressText(project.defaultEgress)],
    ['wake on use', project.wakeOnUse ? 'yes' : 'no'],
    ['agent approvals', project.agentApprovals],
    ['machine hour limit', project.sandboxMachineHourLimit],
    ['repo credentials', project.hasRepoCredentials ? 'stored' : 'none'],
    ...Object.entries(project.metadata).map(([key, value]) => [`metadata ${plainText(key)}`, String(value)] as const),
    ['created', project.createdAt],
    ['updated', project.updatedAt],
  ]);
}
