// `berth project create` and `update`.
import type { RawClient, SandboxEgress } from '@berth/sdk';
import type { CliContext } from '../program/context.ts';
import { UsageError } from '../output/failure.ts';
import { readSecretFile } from '../interaction/secret-input.ts';
import type { Input } from '../program/command-spec.ts';
import { projectMeant, showProject } from './projects.ts';

type Body = NonNullable<Parameters<RawClient['updateProject']>[0]['body']>;

/** `none` removes a default. The branch uses '' instead, since a branch can be called none. */
interface ProjectOptions {
  name?: string;
  useCase?: string;
  defaultRepository?: string;
  defaultBranch?: string;
  defaultProfile?: string;
  defaultPersistencePolicy?: string;
  defaultIdleMinutes?: number | 'none';
  defaultEgress?: SandboxEgress;
  wakeOnUse?: 'on' | 'off';
  agentApprovals?: 'ask' | 'never';
  metadata?: Record<string, string>;
  repoTokenFile?: string;
  repoUsername?: string;
  /** false for `--no-repo-credentials`. */
  repoCredentials?: boolean;
}

export async function createProject(
  context: CliContext,
  { args: [name], options }: Input<ProjectOptions>,
): Promise<void> {
  const { connect, out, signal } = context;
  const { berth, orgId } = await connect();
  const body = { ...(await bodyOf(context, options)), ...(name === undefined ? {} : { name }) };
  const answer = await berth.raw.createProject({ path: { orgId: await orgId() }, body, signal });
  if (out.json) return out.object(answer);
  out.line(answer.project.id);
  out.hint(`to make it the default: berth project use ${answer.project.id}`);
}

export async function updateProject(
  context: CliContext,
  { args: [typed], options }: Input<ProjectOptions>,
): Promise<void> {
  const { connect, out, signal } = context;
  const { berth, orgId } = await connect();
  const projectId = await projectMeant(context, typed);
  const body = await bodyOf(context, options);
  if (Object.keys(body).length === 0) {
    throw new UsageError('no changes given', {
      remedy: 'berth project update --help lists the options',
    });
  }

  const answer = await berth.raw.updateProject({ path: { orgId: await orgId(), projectId }, body, signal });
  if (out.json) out.object(answer);
  else showProject(context, answer.project);
}

async function bodyOf(context: CliContext, options: ProjectOptions): Promise<Body> {
  const { name, useCase, defaultIdleMinutes, wakeOnUse, metadata, repoTokenFile, repoUsername, repoCredentials } =
    options;
  if (repoTokenFile === undefined && repoUsername !== undefined)
    throw new UsageError('--repo-username requires --repo-token-file');
  if (repoTokenFile !== undefined && repoCredentials === false)
    throw new UsageError('--repo-token-file cannot be combined with --no-repo-credentials');

  const defaults = {
    defaultRepository: orNull(options.defaultRepository),
    defaultBranch: options.defaultBranch === '' ? null : options.defaultBranch,
    defaultProfile: orNull(options.defaultProfile) as Body['defaultProfile'],
    defaultPersistencePolicy: orNull(options.defaultPersistencePolicy) as Body['defaultPersistencePolicy'],
    defaultIdleMinutes: defaultIdleMinutes === 'none' ? null : defaultIdleMinutes,
    defaultEgress: options.defaultEgress,
  };
  const given = {
    name,
    useCase,
    ...defaults,
    wakeOnUse: wakeOnUse === undefined ? undefined : wakeOnUse === 'on',
    agentApprovals: options.agentApprovals,
    metadata,
  };
  const body = Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined)) as Body;
  if (repoCredentials === false) return { ...body, repoCredentials: null };
  if (repoTokenFile === undefined) return body;
  const token = await readSecretFile(context, repoTokenFile, 'token of the git host');
  return { ...body, repoCredentials: { token, ...(repoUsername === undefined ? {} : { username: repoUsername }) } };
}

function orNull(typed: string | undefined): string | null | undefined {
  return typed === 'none' ? null : typed;
}
